import type { Steps } from '@plat/core'
import type { Denial } from './denial.ts'

/** Action of a DLP profile for a hit. */
export type DlpAction = 'audit' | 'redact' | 'deny'

export type DlpDirection = 'arguments' | 'response'

/** Counts one hit of a detector. */
export type CountHit = (detector: string, direction: DlpDirection, action: DlpAction) => void

/** The parts of a JSON message that are redacted. Paths are member names of nested objects. */
export interface RedactionScope {
  /** Only values below these paths; absent: all. */
  readonly within?: readonly (readonly string[])[]
  /** Not values below these paths, which belong to the protocol. */
  readonly except?: readonly (readonly string[])[]
  /** Values that cannot be replaced without changing the call: the message is refused if one of them would be redacted. */
  readonly fixed?: readonly (readonly string[])[]
  /** Values of members with these names are not redacted, at any depth. */
  readonly left?: readonly string[]
}

export interface Redactor {
  /** Results in the redacted message, the input itself when nothing was found, or a denial when the message must not pass. */
  steps(json: Uint8Array, where: RedactionScope): Steps<Uint8Array | Denial>
  /** The same, in slices if the message is long. */
  message(json: Uint8Array, where: RedactionScope): Uint8Array | Denial | Promise<Uint8Array | Denial>
  /** Returns a redactor for a text that arrives in pieces. Pass true as `isJson` if it is JSON. */
  pieces(isJson: boolean): TextRedactor
}

export interface TextRedactor {
  /** Results in the redacted text that may be sent now, from this piece and text held back before; may be empty. */
  push(piece: string): Steps<string | Denial>
  /** Returns the text held back, at the end of the text. */
  end(): string | Denial
}
