import { StepRaced } from '@kusanya/durable-actors';
import { Refused } from './refused.ts';

/** More have to be faster, one after the other, than there are people. */
const attemptsMax = 10;

/** Tries again whenever somebody else was faster. @throws Refused when that happens too often */
export async function overtaken<Result>(attempt: () => Promise<Result>, what = 'this'): Promise<Result> {
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StepRaced)) throw error;
      if (count === attemptsMax)
        throw new Refused(`Others are changing ${what} at the same moment; look at it again.`);
    }
  }
}
