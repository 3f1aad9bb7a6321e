"""The simulation finds faults that were planted in the cores, each in the family that looks for it."""

import re
from collections.abc import Callable

from tests.simulation import planted, planted_data
from tests.simulation.cores import Cores
from tests.simulation.simulation import Outcome, Simulation

FIRST = 20_261_121
MOST = 200
"""Seeds within which a fault must be found: most are found in the first few, the rarest in one of fifty."""


def test_a_release_before_all_are_armed_is_found_and_told() -> None:
    """A core that takes a check-in for an arming lets user code start too early."""
    outcome = _first_problem(planted.RELEASED_TOO_EARLY)

    assert "is not armed" in str(outcome.problem)
    assert any("sends" in line and "RUN" in line for line in outcome.story)


def test_a_stop_that_is_forgotten_is_found() -> None:
    assert "no rest after" in str(_first_problem(planted.STOP_IGNORED).problem)


def test_a_new_attempt_that_forgets_what_witnesses_said_is_found() -> None:
    assert "two attempts" in str(_first_problem(planted.LAST_WORDS_FORGOTTEN, "deaf").problem)


def test_an_older_plan_that_is_applied_is_found() -> None:
    assert " applied plan " in str(_first_problem(planted.OLD_PLAN_APPLIED, "stale").problem)


def test_contact_that_is_counted_from_the_acknowledgement_is_found() -> None:
    outcome = _first_problem(planted.CONTACT_FROM_ACKNOWLEDGEMENT, "late")

    assert "counts as lost and must be dead by then" in str(outcome.problem)


def test_a_silence_that_is_never_noticed_is_found() -> None:
    assert "no rest after" in str(_first_problem(planted.SILENCE_NEVER_NOTICED).problem)


def test_an_order_to_stop_that_is_acknowledged_and_not_stored_is_found() -> None:
    outcome = _first_problem(planted.STOP_NOT_STORED, "fickle")

    assert "acknowledged, but it is not stored" in str(outcome.problem)


def test_a_project_that_is_removed_under_its_jobs_is_found() -> None:
    outcome = _first_problem(planted.USED_PROJECT_REMOVED, "projects")

    assert "vision still counts for something in default" in str(outcome.problem)


def test_a_removal_of_a_project_that_is_acknowledged_and_not_stored_is_found() -> None:
    outcome = _first_problem(planted.REMOVAL_NOT_STORED, "projects")

    assert "ProjectGone was acknowledged for vision, but it is not stored" in str(outcome.problem)


def test_time_outside_the_queue_that_counts_as_time_there_is_found() -> None:
    outcome = _first_problem(planted.TIME_OUTSIDE_COUNTED, "calendar")

    assert "but it was there for" in str(outcome.problem)


def test_a_taint_that_is_forgotten_as_its_agent_comes_back_is_found() -> None:
    outcome = _first_problem(planted.TAINTS_FORGOTTEN, "tainted")

    assert "is forgotten" in str(outcome.problem)


def test_a_held_job_that_stays_in_the_queue_is_found() -> None:
    outcome = _first_problem(planted.HELD_JOB_QUEUED, "calendar")

    assert "is queued; what keeps it is" in str(outcome.problem)


def test_a_window_that_is_compared_with_the_limit_but_not_the_check_in_is_found() -> None:
    outcome = _first_problem(planted.CHECK_IN_NOT_COUNTED, "calendar")

    assert "which is in a window" in str(outcome.problem)


def test_a_claim_that_is_not_on_the_record_is_found() -> None:
    outcome = _first_problem(planted.CLAIM_NOT_KEPT, "crowded")

    assert "makes room, and nobody has claimed it" in str(outcome.problem)


def test_a_victim_that_counts_as_gone_before_it_has_ended_is_found() -> None:
    outcome = _first_problem(planted.VICTIM_GONE_AT_ONCE, "crowded")

    assert ", but its user code runs" in str(outcome.problem)


def test_a_victim_that_may_be_placed_before_the_claimant_is_found() -> None:
    outcome = _first_problem(planted.VICTIM_FIRST, "crowded")

    assert "has lost its claim for no reason" in str(outcome.problem)


def test_a_quota_that_stays_taken_when_a_guaranteed_job_has_ended_is_found() -> None:
    outcome = _first_problem(planted.FIXED_NOT_LOWERED, "crowded")

    assert ": fixed in default is" in str(outcome.problem)


def test_a_checkpoint_that_is_taken_back_is_found() -> None:
    outcome = _first_problem(planted.CHECKPOINT_TAKEN_BACK, "crowded")

    assert ", which is forgotten for" in str(outcome.problem)


def test_a_job_that_passes_the_head_and_does_not_end_in_time_is_found() -> None:
    outcome = _first_problem(planted.PASSING_TOO_LATE, "crowded")

    assert "were to be free by" in str(outcome.problem)


def test_portions_that_are_added_over_several_gpus_are_found() -> None:
    outcome = _first_problem(planted.PORTIONS_ADDED_UP, "sharing")

    # By who counts what is given, or by who knows what is still in use: the seed says whose look comes first.
    assert re.search(r"thousandths of GPU-|is given GPU-\S+, which .* uses", str(outcome.problem))


def test_a_mig_device_that_counts_as_a_whole_gpu_is_found() -> None:
    outcome = _first_problem(planted.DEVICE_COUNTED_WHOLE, "divided")

    assert "thousandths of GPUs, by their slices they are" in str(outcome.problem)


def test_a_required_level_that_is_ignored_is_found() -> None:
    assert "is placed in more than one rack" in str(_first_problem(planted.LEVEL_IGNORED, "divided").problem)


def test_a_required_affinity_that_is_ignored_is_found() -> None:
    assert ", which it does not want" in str(_first_problem(planted.AFFINITY_IGNORED, "labelled").problem)


def test_a_pool_that_a_job_goes_to_before_its_time_is_found() -> None:
    assert "before it may go there" in str(_first_problem(planted.WAIT_FOR_POOL_IGNORED, "divided").problem)


def test_an_account_that_is_not_stored_is_found() -> None:
    assert "there is no account of what" in str(_first_problem(planted.ACCOUNT_FORGOTTEN).problem)


def test_a_meter_that_runs_on_when_less_is_borrowed_is_found() -> None:
    assert "and its meter runs by" in str(_first_problem(planted.METER_RUNS_ON, "crowded").problem)


def test_protection_from_the_placement_on_is_found() -> None:
    outcome = _first_problem(planted.PROTECTED_FROM_PLACEMENT, "crowded")

    assert "was evicted before it had started" in str(outcome.problem)


def test_storing_that_keeps_what_it_had_is_found() -> None:
    assert "stores outputs and holds what it had" in str(_first_problem(planted.STORING_HOLDS, "leaving").problem)


def test_outputs_that_are_told_before_they_are_stored_are_found() -> None:
    outcome = _first_problem(planted.STORED_TOLD_EARLY, "leaving")

    assert "count as stored, and the depot does not have them" in str(outcome.problem)


def test_stored_outputs_that_are_forgotten_are_found() -> None:
    assert "were stored, and then they are" in str(_first_problem(planted.STORED_FORGOTTEN, "leaving").problem)


def test_an_attempt_that_begins_with_half_a_checkpoint_is_found() -> None:
    outcome = _first_problem(planted_data.HALF_CHECKPOINT, "leaving")

    assert "begins with half a checkpoint" in str(outcome.problem)


def test_ranks_that_have_different_code_are_found() -> None:
    assert "have different code" in str(_first_problem(planted_data.CODE_OF_THE_LAST, "leaving").problem)


def test_an_agent_that_never_says_that_it_is_connected_is_found() -> None:
    outcome = _first_problem(planted.CONNECTED_NEVER_SAID, "lonely")

    assert "counts as lost and must be dead by then" in str(outcome.problem)


def test_the_first_of_several_last_words_taken_for_the_last_is_found() -> None:
    outcome = _first_problem(planted.first_of_last_words, "ambushed")

    assert "two attempts" in str(outcome.problem)


def _first_problem(cores: Cores | Callable[[], Cores], family: str | None = None) -> Outcome:
    """The first seed that finds the fault; the same seed must find nothing in the real cores."""
    for seed in range(FIRST, FIRST + MOST):
        outcome = Simulation(seed, cores=cores if isinstance(cores, Cores) else cores(), family=family).run()
        if outcome.problem is not None:
            assert Simulation(seed, family=family).run().problem is None
            return outcome
    raise AssertionError(f"{MOST} seeds did not find the planted fault")
