package alerts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Budget is the number of false alarms that all rules without a threshold of their own may make in
// a time, over all communities and classes together.
type Budget struct {
	Alarms float64
	Per    time.Duration
}

// BudgetDefault is one false alarm a month.
var BudgetDefault = Budget{Alarms: 1, Per: month}

const day = 24 * time.Hour

// month is that of a budget.
const month = 30 * day

// periods are the times that a budget names.
var periods = map[string]time.Duration{
	"hour": time.Hour, "day": day, "week": 7 * day, "month": month, "year": 365 * day,
}

// ParseBudget reads a budget such as "1 per month" or "3 per 2 weeks".
func ParseBudget(text string) (b Budget, err error) {
	words := strings.Fields(text)
	refuse := func() (Budget, error) {
		return b, fmt.Errorf(
			"%q: want false alarms in a time, such as 1 per month or 3 per 2 weeks",
			text)
	}
	if len(words) < 3 || len(words) > 4 || words[1] != "per" {
		return refuse()
	}
	many := 1.0
	if len(words) == 4 {
		if many, err = strconv.ParseFloat(words[2], 64); err != nil {
			return refuse()
		}
	}
	period, known := periods[strings.TrimSuffix(words[len(words)-1], "s")]
	b.Alarms, err = strconv.ParseFloat(words[0], 64)
	b.Per = time.Duration(many * float64(period))
	if err != nil || !known || !(b.Alarms > 0 && b.Alarms <= 1e6) || !(many > 0 && many <= 1000) {
		return refuse()
	}
	return b, nil
}

// String is the form that ParseBudget reads.
func (b Budget) String() string {
	unit, length := "hour", time.Hour
	for name, period := range periods {
		if b.Per%period == 0 && period > length {
			unit, length = name, period
		}
	}
	if many := b.Per / length; many != 1 {
		return fmt.Sprintf("%g per %d %ss", b.Alarms, many, unit)
	}
	return fmt.Sprintf("%g per %s", b.Alarms, unit)
}

// perHour is the number of false alarms an hour.
func (b Budget) perHour() float64 { return b.Alarms / b.Per.Hours() }
