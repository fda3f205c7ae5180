<?php

use Illuminate\Foundation\Application;
use Illuminate\Foundation\Configuration\Exceptions;
use Illuminate\Foundation\Configuration\Middleware;

return Application::configure(basePath: dirname(__DIR__))
    ->withRouting(web: __DIR__.'/../routes/web.php', commands: __DIR__.'/../routes/console.php')
    // The webhook's signature is better than a token. Nothing else is excepted.
    ->withMiddleware(fn (Middleware $middleware) => $middleware->validateCsrfTokens(except: ['hooks']))
    ->withExceptions(fn (Exceptions $exceptions) => null)
    ->create();
