import os
import time

from django.core.management.base import BaseCommand

from shop.orders import log, poll


class Command(BaseCommand):
    def handle(self, **options):
        while True:
            try:
                poll()
            except Exception as error:  # the next round may do better
                log.error("not polled: %r", error)
            time.sleep(float(os.environ.get("POLL_SECONDS", "30")))
