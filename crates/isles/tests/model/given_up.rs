//! Cancelled operations, operations that fail halfway, and objects used again after a drop, by machine.

#[path = "../given_up/cases.rs"]
mod cases;

macro_rules! tests {
    ($( $case:ident ),+ $(,)?) => {
        $(
            #[isles::test(places = 3)]
            async fn $case() -> isles::Result<()> {
                cases::$case().await
            }
        )+

        #[cfg(feature = "chip")]
        mod chip {
            use super::{cases, on_chip};

            $(
                #[test]
                fn $case() {
                    on_chip(cases::$case);
                }
            )+
        }
    };
}

/// Runs a case on three cores of the SCC.
#[cfg(feature = "chip")]
fn on_chip<F: Future<Output = isles::Result<()>> + 'static>(case: fn() -> F) {
    let launch = isles::Launch::from_environment().unwrap().places(3);
    let chip = isles::ModelledChip::new("scc").unwrap();
    launch.run_on_chip(chip, case).unwrap().0.unwrap();
}

tests!(
    a_mapping_written_through_is_read_by_the_next_guard,
    a_channel_that_is_used_again_keeps_its_order,
    who_asks_without_waiting_hears_of_the_end,
    a_select_with_default_hears_of_the_end,
    a_read_given_up_before_a_writer_keeps_nobody_waiting,
    a_shared_value_that_cannot_be_read_is_an_error_of_its_reader,
    a_shared_value_that_does_not_travel_is_repaired,
    a_start_given_up_has_begun_nothing,
    a_lock_given_up_is_not_held,
    a_lock_that_is_waited_for_is_not_unlocked,
    a_window_of_elements_without_bytes_has_bounds,
);
