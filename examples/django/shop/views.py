import json
import os
from uuid import UUID, uuid4

from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .models import Order
from .orders import PRICE, send, take
from .signature import is_genuine


def home(request):
    return render(request, "home.html", {"id": uuid4(), "price": PRICE})


@require_POST
def buy(request):
    try:
        order_id, phone = str(UUID(request.POST["id"])), request.POST["phone"][:30]
    except (KeyError, ValueError):
        return HttpResponseBadRequest()
    # The form made the id: a button that is pressed twice is one order, and one prompt.
    order, _ = Order.objects.get_or_create(id=order_id, defaults={"phone": phone, "amount": PRICE})
    send(order)
    return redirect(f"/orders/{order_id}")


def show(request, order_id):
    order = get_object_or_404(Order, id=order_id)
    page = render(request, "order.html", {"order": order})
    if order.status == "pending":
        page["Refresh"] = "3"
    return page


@csrf_exempt  # its signature is better than a token
@require_POST
def hooks(request):
    signature = request.headers.get("Service-Signature")
    if not is_genuine(request.body, signature, os.environ["KUSANYA_WEBHOOK_SECRET"]):
        return HttpResponseBadRequest()
    take(json.loads(request.body))
    return HttpResponse()


urlpatterns = [
    path("", home),
    path("orders", buy),
    path("orders/<order_id>", show),
    path("hooks", hooks),
]
