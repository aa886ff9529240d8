import type { Denial } from './denial.ts'

/** Where in a JSON message redaction may look. Paths lead through objects. */
export interface RedactionScope {
  /** Only below these; absent: everywhere. */
  readonly within?: readonly (readonly string[])[]
  /** Not below these: what the protocol itself says. */
  readonly except?: readonly (readonly string[])[]
  /** What cannot be replaced without becoming another call: it is refused where it would be redacted. */
  readonly fixed?: readonly (readonly string[])[]
  /** Values of members with these names are left as they are, wherever they stand. */
  readonly left?: readonly string[]
}

/** Takes out of one answer what must not pass. */
export interface Redactor {
  /** The same message without it: the input itself when nothing was found, a refusal where it must not pass at all. */
  json(json: Uint8Array, where: RedactionScope): Uint8Array | Denial
  /** A text that comes in pieces; `isJson`: they are pieces of JSON. */
  pieces(isJson: boolean): TextRedactor
}

/** What pieces of a text may go on as. */
export interface TextRedactor {
  /** The text that may go on now: of this piece, of what was held back before, or nothing yet. */
  push(piece: string): string | Denial
  /** What was held back, since nothing follows. */
  end(): string | Denial
}
