import { type OperatorPrincipal, roleAllows } from '../http/http.ts';
import { maskPhonesIn } from '../log.ts';

/**
 * How what was sent and received is shown: as it was to those who act on it; to a viewer with each phone number in it
 * masked, as everywhere else.
 */
export interface Masking {
  isOn: boolean;
  text<Text extends string | null | undefined>(text: Text): Text;
}

/** The masking for an operator's role. */
export function maskingFor({ role }: OperatorPrincipal): Masking {
  const isOn = !roleAllows(role, 'operator');
  return {
    isOn,
    text: (text) => (isOn && text ? (maskPhonesIn(text) as typeof text) : text),
  };
}
