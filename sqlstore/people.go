package sqlstore

import (
	"errors"
)

func (c *change) forgetPeople(names []string) error {
	if len(names) > 0 {
		return errors.ErrUnsupported
	}
	return nil
}
