package prompt_test

import (
	"fmt"
	"iter"
)

// benign yields 500 texts in some fifty languages and scripts that a renderer must leave as they
// are.
func benign() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, sentence := range sentences {
			for _, form := range forms {
				if !yield(fmt.Sprintf(form, sentence)) {
					return
				}
			}
		}
	}
}

var forms = []string{
	"%s", "%s (42 %%)", "«%s»", "“%s”", "%s 👍🏽", "❤️ %s", "%s 👩\u200d👩\u200d👧\u200d👦 🇫🇷", "1️⃣ %s",
	"%s → -3.5 °C", "a < b: %s",
}

var sentences = []string{
	"The oven is still on.", "Der Ofen ist noch an, größer als üblich.",
	"Le four est encore allumé : à vérifier !",
	"El horno sigue encendido, ¿verdad?", "O forno ainda está ligado, não é?",
	"Il forno è ancora acceso.",
	"De oven staat nog aan.", "Ugnen är fortfarande på.", "Ovnen er stadig tændt på køkkenet.",
	"Uuni on yhä päällä.",
	"Ofninn er enn þá á.", "Piekarnik jest wciąż włączony.", "Trouba je stále zapnutá, příliš žhavá.",
	"A sütő még mindig be van kapcsolva.",
	"Cuptorul este încă pornit.", "Fırın hâlâ açık, ışığı yanıyor.", "Lò nướng vẫn đang bật.",
	"Lò nướng vẫn đang bật.",
	"Духовка всё ещё включена.", "Духовка й досі ввімкнена — їжа готова.",
	"Фурната все още е включена.", "Ο φούρνος είναι ακόμα αναμμένος.",
	"Փուռը դեռ միացված է։", "ღუმელი ჯერ კიდევ ჩართულია.", "התנור עדיין דולק.",
	"הַתַּנּוּר עֲדַיִן דּוֹלֵק.", "الفرن ما زال يعمل.",
	"الفُرْنُ مَا زَالَ يَعْمَلُ.", "فر هنوز روشن است و می\u200cسوزد.", "تندور اب بھی جل رہا ہے۔",
	"ओवन अभी भी चालू है।", "क्\u200dष और श्री।",
	"চুলা এখনও জ্বলছে।", "ਓਵਨ ਅਜੇ ਵੀ ਚਾਲੂ ਹੈ।", "ઓવન હજી ચાલુ છે.", "அடுப்பு இன்னும் எரிகிறது.",
	"పొయ్యి ఇంకా వెలుగుతోంది.",
	"ಒಲೆ ಇನ್ನೂ ಉರಿಯುತ್ತಿದೆ.", "അടുപ്പ് ഇപ്പോഴും കത്തുന്നു.", "උඳුන තවමත් ක්\u200dරියාත්මකයි.",
	"เตาอบยังเปิดอยู่ที่นี่", "ເຕົາອົບຍັງເປີດຢູ່.",
	"ཐབ་ཀ་ད་དུང་འབར་བཞིན་འདུག།", "မီးဖိုက ပွင့်နေဆဲပါ။", "ឡនៅតែបើក។", "烤箱还开着。", "烤箱還開著，請注意！",
	"オーブンはまだついています。",
	"오븐이 아직 켜져 있어요.", "ምድጃው አሁንም በርቷል።",
}
