//! The choice of a setting, and its reason.

use super::point::Point;
use super::refusal;
use isles_app::Failure;
use isles_chip::quantity::{Microjoules, Microwatts, Picoseconds};

/// Limits that the choice must keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub cap: Option<Microwatts>,
    /// The cap as the user wrote it.
    pub cap_text: Option<String>,
    pub deadline: Option<Picoseconds>,
    /// The deadline as the user wrote it.
    pub deadline_text: Option<String>,
    /// Largest energy of a run.
    pub battery: Option<Microjoules>,
    /// The battery as the user wrote it.
    pub battery_text: Option<String>,
}

impl Limits {
    /// Reads the limits.
    ///
    /// # Errors
    /// One of them is not a quantity.
    pub fn read(cap: Option<&str>, deadline: Option<&str>, battery: Option<&str>) -> Result<Limits, Failure> {
        let power = |text: &str| text.parse().map_err(|allowed| refusal("--cap", text, allowed));
        let time = |text: &str| text.parse().map_err(|allowed| refusal("--deadline", text, allowed));
        let energy = |text: &str| text.parse().map_err(|allowed| refusal("--battery", text, allowed));
        Ok(Limits {
            cap: cap.map(power).transpose()?,
            cap_text: cap.map(str::to_owned),
            deadline: deadline.map(time).transpose()?,
            deadline_text: deadline.map(str::to_owned),
            battery: battery.map(energy).transpose()?,
            battery_text: battery.map(str::to_owned),
        })
    }

    /// Returns `true` if a setting never draws more power than the cap.
    pub fn is_under_cap(&self, point: &Point) -> bool {
        self.cap.is_none_or(|cap| point.peak_watts <= cap.watts())
    }

    /// Returns `true` if the result of a setting meets the deadline.
    pub fn is_in_time(&self, point: &Point) -> bool {
        !self.is_late(point.seconds)
    }

    /// Returns `true` if a time is beyond the deadline.
    fn is_late(&self, seconds: f64) -> bool {
        self.deadline.is_some_and(|deadline| seconds > deadline.0 as f64 / 1e12)
    }

    /// Returns `true` if the battery has enough energy for a setting.
    pub fn is_in_battery(&self, point: &Point) -> bool {
        self.battery.is_none_or(|battery| point.joules <= battery.joules())
    }

    /// Returns `true` if a setting keeps all limits.
    pub fn allow(&self, point: &Point) -> bool {
        self.is_under_cap(point) && self.is_in_time(point) && self.is_in_battery(point)
    }

    /// Returns the limits in words; empty if there are none.
    fn words(&self) -> String {
        let parts = [
            self.cap_text.as_ref().map(|cap| format!("stay under {cap}")),
            self.deadline_text.as_ref().map(|deadline| format!("end within {deadline}")),
            self.battery_text.as_ref().map(|battery| format!("take at most {battery}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// The chosen setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Index of the point.
    pub number: usize,
    /// Rule of the choice, in words.
    pub reason: String,
}

/// Chooses a setting: with a deadline the least energy, with only a cap or a battery the least time, without limits the
/// least product of both.
///
/// # Errors
/// No tried setting keeps the limits; in words, with what would have been allowed.
pub fn choose(limits: &Limits, points: &[Point]) -> Result<Choice, String> {
    let by = |weight: fn(&Point) -> f64| {
        let allowed = points.iter().enumerate().filter(|(_, point)| limits.allow(point));
        allowed.min_by(|(_, one), (_, other)| weight(one).total_cmp(&weight(other))).map(|(number, _)| number)
    };
    let is_bounded = limits.cap.is_some() || limits.battery.is_some();
    let (found, rule) = match limits.deadline {
        Some(_) => (by(|point| point.joules), "the lowest energy"),
        None if is_bounded => (by(|point| point.seconds), "the shortest time"),
        None => (by(Point::energy_delay), "the lowest product of energy and time"),
    };
    let Some(number) = found else { return Err(nothing(limits, points)) };
    let allowed = points.iter().filter(|point| limits.allow(point)).count();
    let among = match limits.words() {
        words if words.is_empty() => "that were tried".to_owned(),
        words => format!("that {words}"),
    };
    let settings = if allowed == 1 { "setting" } else { "settings" };
    Ok(Choice { number, reason: format!("{rule} of the {allowed} {settings} (of {}) {among}", points.len()) })
}

/// Returns the limit that no setting keeps, with the nearest value that one does.
fn nothing(limits: &Limits, points: &[Point]) -> String {
    let tried = points.len();
    let least = |of: fn(&Point) -> f64, among: &dyn Fn(&Point) -> bool| {
        points.iter().filter(|point| among(point)).map(of).min_by(f64::total_cmp)
    };
    let watts = |point: &Point| point.peak_watts;
    let seconds = |point: &Point| point.seconds;
    let Limits { cap_text, deadline_text, .. } = limits;
    let (cap, deadline) =
        (cap_text.as_deref().unwrap_or_default(), deadline_text.as_deref().unwrap_or_default());
    let up = |number: f64, digits: i32| {
        let scale = 10_f64.powi(digits);
        (number * scale).ceil() / scale
    };
    if let Some(least) =
        least(seconds, &|point| limits.is_under_cap(point)).filter(|least| limits.is_late(*least))
    {
        let under = limits.cap_text.as_ref().map(|cap| format!(" under {cap}")).unwrap_or_default();
        let least = up(least * 1e3, 3);
        return format!(
            "--deadline is {deadline:?}; allowed: at least {least}ms, the shortest{under} of {tried} settings"
        );
    }
    let joules = |point: &Point| point.joules;
    let is_cap_kept = points.iter().any(|point| limits.is_under_cap(point));
    if let Some(battery) = limits.battery_text.as_ref().filter(|_| is_cap_kept) {
        let keeps = |point: &Point| limits.is_under_cap(point) && limits.is_in_time(point);
        let least = up(least(joules, &keeps).unwrap_or_default(), 3);
        return format!(
            "--battery is {battery:?}; allowed: at least {least}J, the lowest energy of {tried} settings"
        );
    }
    let least = up(least(watts, &|_| true).unwrap_or_default(), 2);
    format!("--cap is {cap:?}; allowed: at least {least}W, the lowest peak of {tried} settings")
}

/// Returns `true` if no other point is better in time or energy and not worse in the other.
pub fn is_efficient(point: &Point, points: &[Point]) -> bool {
    !points.iter().any(|other| {
        let no_worse = other.seconds <= point.seconds && other.joules <= point.joules;
        no_worse && (other.seconds < point.seconds || other.joules < point.joules)
    })
}

#[cfg(test)]
mod tests {
    use super::super::point::Setting;
    use super::*;
    use isles::GovernorPolicy;

    fn point(seconds: f64, joules: f64, peak_watts: f64) -> Point {
        let setting = Setting { constants: Vec::new(), places: 1, policy: GovernorPolicy::FixedAt(2) };
        Point {
            setting,
            clock: None,
            seconds,
            joules,
            mean_watts: joules / seconds,
            peak_watts,
            models: Vec::new(),
            region: None,
            times: 1,
        }
    }

    fn limits(cap: Option<&str>, deadline: Option<&str>) -> Limits {
        Limits::read(cap, deadline, None).unwrap()
    }

    fn points() -> Vec<Point> {
        vec![point(1.0, 60.0, 70.0), point(2.0, 50.0, 40.0), point(3.0, 40.0, 20.0), point(3.5, 45.0, 19.0)]
    }

    fn chosen(cap: Option<&str>, deadline: Option<&str>) -> usize {
        choose(&limits(cap, deadline), &points()).unwrap().number
    }

    #[test]
    fn the_rule_depends_on_what_is_asked_for() {
        assert_eq!(chosen(None, None), 0, "60 J s against 100 and more");
        assert_eq!(chosen(Some("50W"), None), 1, "the shortest time under it");
        assert_eq!(chosen(None, Some("3s")), 2, "the lowest energy in time");
        assert_eq!(chosen(Some("50W"), Some("2s")), 1);
        let reason = choose(&limits(Some("50W"), Some("2s")), &points()).unwrap().reason;
        assert_eq!(
            reason,
            "the lowest energy of the 1 setting (of 4) that stay under 50W and end within \
             2s"
        );
    }

    #[test]
    fn a_battery_allows_what_it_has_the_energy_for() {
        let limits = |deadline, battery| Limits::read(Some("50W"), deadline, Some(battery)).unwrap();
        let choice = choose(&limits(None, "47J"), &points()).unwrap();
        let reason = "the shortest time of the 2 settings (of 4) that stay under 50W and take at most 47J";
        assert_eq!((choice.number, choice.reason.as_str()), (2, reason));
        assert_eq!(choose(&limits(None, "1Wh"), &points()).unwrap().number, 1);
        let error = choose(&limits(None, "39J"), &points()).unwrap_err();
        assert_eq!(error, "--battery is \"39J\"; allowed: at least 40J, the lowest energy of 4 settings");
        let error = choose(&limits(Some("2s"), "45J"), &points()).unwrap_err();
        assert_eq!(error, "--battery is \"45J\"; allowed: at least 50J, the lowest energy of 4 settings");
        let error = Limits::read(None, None, Some("60W")).unwrap_err().to_string();
        assert_eq!(error, "--battery is \"60W\"; allowed: an energy above zero such as 200J, 5kJ or 1800Wh");
    }

    #[test]
    fn what_nothing_keeps_is_said_with_the_nearest_that_can_be_kept() {
        let error = |cap, deadline| choose(&limits(cap, deadline), &points()).unwrap_err();
        assert_eq!(
            error(Some("10W"), None),
            "--cap is \"10W\"; allowed: at least 19W, the lowest peak of 4 settings"
        );
        assert_eq!(
            error(None, Some("500ms")),
            "--deadline is \"500ms\"; allowed: at least 1000ms, the shortest of 4 settings"
        );
        assert_eq!(
            error(Some("20W"), Some("2s")),
            "--deadline is \"2s\"; allowed: at least 3000ms, the shortest under 20W of 4 settings"
        );
        assert!(error(Some("10W"), Some("2s")).starts_with("--cap is"));
    }

    #[test]
    fn what_is_said_to_be_kept_is_rounded_up_so_that_it_is_kept() {
        let points = [point(0.001_234_567, 1.0, 19.001)];
        let error = |cap, deadline| choose(&limits(cap, deadline), &points).unwrap_err();
        assert!(error(Some("19W"), None).contains("at least 19.01W,"));
        assert!(error(None, Some("1ms")).contains("at least 1.235ms,"));
        assert!(choose(&limits(Some("19.01W"), Some("1.235ms")), &points).is_ok());
    }

    #[test]
    fn a_point_is_efficient_unless_another_is_better_in_one_and_no_worse_in_the_other() {
        let points = points();
        let efficient: Vec<bool> = points.iter().map(|point| is_efficient(point, &points)).collect();
        assert_eq!(efficient, [true, true, true, false]);
        let tied = [point(1.0, 1.0, 1.0), point(1.0, 2.0, 1.0), point(2.0, 1.0, 1.0)];
        assert_eq!(tied.each_ref().map(|point| is_efficient(point, &tied)), [true, false, false]);
        let twins = [point(1.0, 1.0, 1.0), point(1.0, 1.0, 1.0)];
        assert!(twins.iter().all(|point| is_efficient(point, &twins)));
    }

    #[test]
    fn limits_have_units() {
        let error = |cap, deadline| Limits::read(cap, deadline, None).unwrap_err().to_string();
        assert_eq!(
            error(Some("60"), None),
            "--cap is \"60\"; allowed: a power above zero such as 60W, 500mW or 1.5kW"
        );
        assert_eq!(
            error(None, Some("90 W")),
            "--deadline is \"90 W\"; allowed: a time above zero such as 90s, 5ms or 2min"
        );
    }
}
