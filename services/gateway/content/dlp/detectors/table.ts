import { contactRows } from './contact.ts'
import type { Row } from './detector.ts'
import { financeRows } from './finance.ts'
import { keyRows } from './keys.ts'
import { nationalRows } from './national.ts'
import { vendorRows } from './vendors.ts'

/** Settings of the one configurable detector. */
export interface Entropy {
  readonly minLength: number
  readonly threshold: number
}

const UNTUNED: Entropy = { minLength: 32, threshold: 4.3 }

/** All built-in detectors. Of two that find the same text, the first counts. */
export function detectorRows(entropy: Entropy = UNTUNED): readonly Row[] {
  return [...keyRows, ...vendorRows, ...financeRows, ...nationalRows, ...contactRows(entropy)]
}

/** Names of all detectors. */
export const DETECTOR_IDS: readonly string[] = detectorRows().map(({ id }) => id)
