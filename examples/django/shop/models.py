from django.db import models


class Order(models.Model):
    id = models.CharField(max_length=36, primary_key=True)  # also the idempotency key and the reference
    phone = models.CharField(max_length=30)
    amount = models.IntegerField()  # whole shillings: 5000 is TZS 5,000
    status = models.CharField(max_length=10, default="pending")  # then paid, unpaid, or held for a person
    collection_id = models.CharField(max_length=40, unique=True, null=True)
    note = models.TextField(default="")
    created_at = models.DateTimeField(auto_now_add=True)


class Event(models.Model):
    id = models.CharField(max_length=40, primary_key=True)


class Polled(models.Model):
    until = models.DateTimeField()
