<?php

use App\Orders;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\Log;

Artisan::command('poll', function () {
    for (;;) {
        try {
            Orders::poll();
        } catch (Throwable $error) { // the next round may do better
            Log::error("not polled: {$error->getMessage()}");
        }
        sleep(config('kusanya.poll_seconds'));
    }
});
