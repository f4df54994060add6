//! Periodic flows of lines: the upper bound for each line, or the link that is overloaded.

use super::no_bound;
use isles_app::runs::refusal;
use isles_app::{Failure, console};
use isles_chip::bound::periodic::{LineFlow, line_flows};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};

/// Prints the bound of each flow.
pub fn execute(
    chip: &Chip,
    preset: Option<&str>,
    flows: &[String],
    deadline: Option<Picoseconds>,
) -> Result<(), Failure> {
    let presets = || chip.presets().iter().map(Preset::name).collect::<Vec<_>>().join(", ");
    let preset = match preset {
        None => chip.default_preset(),
        Some(name) => chip.preset(name).ok_or_else(|| refusal("--preset", name, &presets()))?,
    };
    if flows.is_empty() {
        return Err(refusal("--flow", "", "FROM-TO@PERIOD, once or more"));
    }
    let read: Vec<LineFlow> = flows.iter().map(|flow| parse(chip, flow)).collect::<Result<_, _>>()?;
    let bounds = line_flows(chip, preset, &read).map_err(no_bound)?;
    let mut text = format!("{:<24} {:>12} {:>12} {:>12}\n", "flow", "alone", "waiting", "bound");
    let mut worst = 0.0_f64;
    for (flow, bound) in flows.iter().zip(&bounds) {
        let all = (bound.alone + bound.wait).nanoseconds();
        worst = worst.max(all);
        let [alone, wait] = [bound.alone, bound.wait].map(Picoseconds::nanoseconds);
        text += &format!("{flow:<24} {alone:>9.3} ns {wait:>9.3} ns {all:>9.3} ns\n");
    }
    console::print_report(true, &text).map_err(Failure::stdout)?;
    match deadline {
        Some(deadline) if worst > deadline.nanoseconds() => {
            Err(Failure::Ended("the bound of a flow is later than the deadline".to_owned()))
        }
        _ => Ok(()),
    }
}

fn parse(chip: &Chip, text: &str) -> Result<LineFlow, Failure> {
    let cores = chip.topology().cores();
    let refused = || refusal("--flow", text, &format!("FROM-TO@PERIOD, such as 0-{}@100ns", cores - 1));
    let (ends, period) = text.split_once('@').ok_or_else(refused)?;
    let (from, to) = ends.split_once('-').ok_or_else(refused)?;
    let core = |text: &str| text.parse().ok().filter(|core| *core < cores).map(CoreId).ok_or_else(refused);
    let period = period.parse().map_err(|_| refused())?;
    Ok(LineFlow { from: core(from)?, to: core(to)?, period })
}
