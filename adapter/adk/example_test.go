package adk_test

import (
	"google.golang.org/adk/v2/model"

	"github.com/heedhq/heed/adapter/adk"
	"github.com/heedhq/heed/loop"
)

// ExampleAdapter_Model routes among two models, by arms.
func ExampleAdapter_Model() {
	route := func(heeding *adk.Adapter, gemini, flash model.LLM) (model.LLM, loop.Config) {
		model := heeding.Model(gemini, map[string]model.LLM{"flash": flash})
		config := loop.Config{
			Arms: []loop.Arm{{ID: "careful"}, {ID: "quick", ModelName: "flash",
				Tools: []string{"look_up"}}},
		}
		return model, config
	}
	_ = route
}
