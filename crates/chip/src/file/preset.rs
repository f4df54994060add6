//! `[preset.NAME]`: a setting of the clocks, and the times measured at it.
//!
//! Each preset has its own costs, because the published ones do not fit one model over all clocks
//! (`docs/design/chip-sources.md`).

use super::decode::{TIMED, quantity};
use super::section::{Findings, Precision, Section};
use super::unit;
use crate::chip::Preset;
use crate::cost::{Access, Clocks, Cost, Mode, TimingTable};

/// Reads all presets; returns all names, and the readable presets with the offsets of their names. None at all is a
/// fault.
pub fn all(root: &mut Section<'_>, findings: &mut Findings<'_>) -> (Vec<String>, Vec<(Preset, usize)>) {
    let Some(mut part) = root.required_child(findings, "preset") else { return Default::default() };
    let mut sections = part.others(findings);
    let names: Vec<String> = sections.iter().map(|(name, _)| name.clone()).collect();
    inherit(&mut sections, findings);
    if sections.is_empty() {
        findings.fault(part.at(), "there is no preset; allowed: one or more [preset.NAME]");
    }
    let read = |(name, section): (String, Section<'_>)| {
        let at = section.at();
        preset(name, section, findings).map(|preset| (preset, at))
    };
    let presets = sections.into_iter().filter_map(read).collect();
    (names, presets)
}

/// Completes each preset that is `like` another one from it; one that names an unknown preset is dropped.
fn inherit(sections: &mut Vec<(String, Section<'_>)>, findings: &mut Findings<'_>) {
    let whole = sections.iter().filter(|(_, section)| !section.has("like"));
    let whole: Vec<_> = whole.map(|(name, section)| (name.clone(), section.base())).collect();
    sections.retain_mut(|(_, section)| {
        let Some((like, at)) = section.text(findings, "like") else { return !section.has("like") };
        let base = whole.iter().find(|(name, _)| *name == like);
        if let Some((_, base)) = base {
            section.inherit(base);
        } else {
            let names: Vec<&str> = whole.iter().map(|(name, _)| name.as_str()).collect();
            let (path, names) = (section.path("like"), names.join(", "));
            findings
                .fault(at, format!("{path} is {like:?}; allowed: a preset that is like no other: {names}"));
        }
        base.is_some()
    });
}

fn preset(name: String, mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<Preset> {
    let mut rate = |findings: &mut Findings<'_>, key| {
        let allowed = "a frequency such as \"1600 MHz / 3\"";
        part.required(findings, key, Precision::Counted, allowed, |value| quantity(value, unit::rate))
    };
    let core = rate(findings, "core");
    let mesh = rate(findings, "mesh");
    let memory = rate(findings, "memory");
    let clocks = core.zip(mesh).zip(memory).map(|((core, mesh), memory)| Clocks { core, mesh, memory });
    let costs = costs(&mut part, clocks.as_ref(), findings);
    part.close(findings);
    Some(Preset { name, clocks: clocks?, costs })
}

fn costs(part: &mut Section<'_>, clocks: Option<&Clocks>, findings: &mut Findings<'_>) -> TimingTable<Cost> {
    let mut costs = TimingTable::default();
    for (mode, slot) in Mode::ALL.into_iter().zip(&mut costs.access) {
        *slot = part.child(findings, mode.name()).and_then(|part| access(part, clocks, findings));
    }
    let mut cost = |key: &str| {
        part.constant(findings, key, TIMED, |value| quantity(value, |text| unit::cost(text, clocks)))
    };
    TimingTable {
        access: costs.access,
        first_cache: cost("first_cache"),
        second_cache: cost("second_cache"),
        second_cache_store: cost("second_cache_store"),
        controller_line: cost("controller_line"),
        test_and_set: cost("test_and_set"),
        interrupt: cost("interrupt"),
        interrupt_more: cost("interrupt_more"),
        counter_interrupt: cost("counter_interrupt"),
        task_wake: cost("task_wake"),
        system_call: cost("system_call"),
        stack_send: cost("stack_send"),
        stack_receive: cost("stack_receive"),
        stack_line: cost("stack_line"),
        send: cost("send"),
        receive: cost("receive"),
        receive_more: cost("receive_more"),
        transit: cost("transit"),
        voltage_change: cost("voltage_change"),
        flush_start: cost("flush_start"),
        flush_line: cost("flush_line"),
        flush_all: cost("flush_all"),
    }
}

fn access(
    mut part: Section<'_>,
    clocks: Option<&Clocks>,
    findings: &mut Findings<'_>,
) -> Option<Access<Cost>> {
    let mut cost = |findings: &mut Findings<'_>, key: &str| {
        let read = |text: &str| unit::cost(text, clocks);
        part.required(findings, key, TIMED, unit::COST_ALLOWED, |value| quantity(value, read))
    };
    let issue = cost(findings, "issue");
    let gap = cost(findings, "gap");
    let read = cost(findings, "read");
    part.close(findings);
    Some(Access { issue: issue?, gap: gap?, read: read? })
}
