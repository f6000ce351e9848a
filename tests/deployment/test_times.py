"""Time-outs, visibility and lives fit into each other."""

import pytest

from core.settings import Settings
from infra.template import Template, functions, queue, routes, schedule

GATEWAY_S = 30
REQUEST_S = 70
"""A request to a store: 60 s until its answer is given up, and the time until it is connected."""


@pytest.fixture(scope="module")
def settings(template: Template) -> Settings:
    return Settings.read(functions(template)["CatalogFunction"].environment)


def test_a_call_ends_before_its_function_and_the_function_before_the_gateway(
    template: Template, settings: Settings
) -> None:
    for name in {route.function for route in routes(template)}:
        assert settings.call_seconds < functions(template)[name].timeout_s < GATEWAY_S, name


def test_a_writer_may_live_longer_than_any_function_and_its_last_request(
    template: Template, settings: Settings
) -> None:
    longest = max(function.timeout_s for function in functions(template).values())

    assert settings.writer_life_s > longest + REQUEST_S


def test_a_message_stays_hidden_for_six_time_outs_of_its_function(template: Template) -> None:
    events = queue(template)

    assert events.visibility_s >= 6 * functions(template)[events.function].timeout_s


def test_a_message_comes_back_until_a_dead_writer_has_been_noticed(template: Template, settings: Settings) -> None:
    """Even when every receive is over in a minute, as with a document that another call has in progress."""
    noticed = settings.stalled_after.total_seconds() + schedule(template).interval.total_seconds()

    assert queue(template).max_receives * 60 >= noticed


def test_no_message_expires_before_it_has_been_received_so_often(template: Template) -> None:
    events = queue(template)
    kept = template["Resources"]["Queue"]["Properties"]["MessageRetentionPeriod"]

    assert kept > events.max_receives * events.visibility_s


def test_a_sweep_ends_before_the_next_begins(template: Template) -> None:
    sweep = schedule(template)

    assert functions(template)[sweep.function].timeout_s <= sweep.interval.total_seconds()
