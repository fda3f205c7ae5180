"""How orders come to be paid."""
import logging
import os
from datetime import timedelta

import requests
from django.db import transaction
from django.db.models import Min
from django.utils.dateparse import parse_datetime
from django.utils.timezone import now

from .models import Event, Order, Polled

PRICE = 5000  # ours to say, never the browser's
RETRY = timedelta(minutes=15)
OVERLAP = timedelta(minutes=10)  # an event can show up to 2 minutes behind the newest one, and clocks differ
log = logging.getLogger(__name__)


def call(method, path, headers=(), **more):
    """The answer, a refusal too. Raises RequestException where none of the service comes."""
    url = f"{os.environ['KUSANYA_BASE_URL']}/v1/{path}"
    headers = {"Authorization": f"Bearer {os.environ['KUSANYA_API_KEY']}", **dict(headers)}
    return requests.request(method, url, headers=headers, timeout=5, allow_redirects=False, **more).json()


def send(order):
    """Asks the customer for the money. The order is stored by now, and its key with it."""
    if order.collection_id or order.status != "pending":
        return
    body = {"amount": order.amount, "phone": order.phone, "reference": order.id}
    try:
        answer = call("POST", "collections", json=body, headers={"Idempotency-Key": order.id})
    except requests.RequestException as broken:  # perhaps it arrived
        answer = {"error": {"type": "connection_error", "message": broken}}
    if "id" in answer:
        Order.objects.filter(id=order.id).update(collection_id=answer["id"])
    elif answer["error"]["type"] == "invalid_request_error":  # a wrong number stays wrong
        end(order.id, answer["error"]["message"])
    else:  # poll() sends it again, with the same key
        log.warning("order %s is not sent yet: %s", order.id, answer["error"]["message"])


def take(event):
    """Takes what a webhook or the poller brings: each event once, in any order."""
    with transaction.atomic():
        _, is_new = Event.objects.get_or_create(id=event["id"])
        if is_new and event["data"]["object"] == "collection":  # an operator's endpoint.test is about none
            settle(event["data"])


def settle(payment):
    if payment["status"] != "succeeded":
        return end(payment["reference"], payment.get("failure_message", "Nobody approved in time."))
    change = {"status": "paid", "note": "", "collection_id": payment["id"]}
    if payment.get("late"):  # they may have bought again, or have left: nothing is shipped, nothing forgotten
        change |= {"status": "held", "note": "Paid after it had ended: deliver, or give it back."}
    if not Order.objects.filter(id=payment["reference"]).update(**change):
        log.error("%s was paid for no order: %s", payment["id"], payment["reference"])


def end(order_id, note):
    """Money has the last word: what was paid never becomes unpaid."""
    Order.objects.filter(id=order_id, status="pending").update(status="unpaid", note=note)


def poll():
    """Sends what a crash or a broken line left unsent, and fetches the events whose webhooks were lost."""
    for order in Order.objects.filter(status="pending", collection_id=None):
        send(order) if now() - order.created_at < RETRY else look_for(order)
    polled = Polled.objects.values_list("until", flat=True).first()
    since = newest = polled or Order.objects.aggregate(first=Min("created_at"))["first"] or now()
    query = {"created_at[gte]": (since - OVERLAP).isoformat(), "limit": 100}
    page = {"has_more": True}
    while page["has_more"]:
        page = call("GET", "events", params=query)
        for event in page["data"]:
            take(event)
            newest = max(newest, parse_datetime(event["created_at"]))
            query["starting_after"] = event["id"]
    Polled.objects.update_or_create(id=1, defaults={"until": newest})


def look_for(order):
    """Who ordered long ago expects no prompt any more. But perhaps only the answer was lost."""
    made = call("GET", "collections", params={"reference": order.id, "limit": 1})["data"]
    if made:
        Order.objects.filter(id=order.id).update(collection_id=made[0]["id"])
    else:
        end(order.id, "The payment could not be asked for.")
