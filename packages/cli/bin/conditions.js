/** A hook of Node's: packages are found as with `--conditions=@kusanya/source`. */
export function resolve(specifier, context, next) {
  return next(specifier, { ...context, conditions: [...context.conditions, '@kusanya/source'] });
}
