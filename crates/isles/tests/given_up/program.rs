//! `given-up`: all programs of `cases.rs`, on the machine that `ISLES_MACHINE` names, or among the ranks of MPI.

mod cases;

#[isles::main]
async fn main() -> isles::Result<()> {
    cases::a_mapping_written_through_is_read_by_the_next_guard().await?;
    cases::a_channel_that_is_used_again_keeps_its_order().await?;
    cases::who_asks_without_waiting_hears_of_the_end().await?;
    cases::a_select_with_default_hears_of_the_end().await?;
    cases::a_read_given_up_before_a_writer_keeps_nobody_waiting().await?;
    cases::a_shared_value_that_cannot_be_read_is_an_error_of_its_reader().await?;
    cases::a_shared_value_that_does_not_travel_is_repaired().await?;
    cases::a_start_given_up_has_begun_nothing().await?;
    cases::a_lock_given_up_is_not_held().await?;
    cases::a_lock_that_is_waited_for_is_not_unlocked().await?;
    cases::a_window_of_elements_without_bytes_has_bounds().await?;
    println!("what is given up or used again: all right");
    Ok(())
}
