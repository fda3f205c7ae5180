/** Something that a test waits for instead of a time, and what makes it happen. */
export interface Signal {
  happened: Promise<void>;
  happen(): void;
}

export function signal(): Signal {
  let happen = () => {};
  const happened = new Promise<void>((resolve) => {
    happen = resolve;
  });
  return { happened, happen };
}
