import type { Dice } from './dice.ts'
import { httpKinds } from './kinds-http.ts'
import { mcpKinds } from './kinds-mcp.ts'
import { CANARY, type Drawn, type Kind } from './request.ts'

/** A request that should not be, and what may come back. */
export interface Malformed extends Drawn {
  readonly kind: string
}

/** Every status that the gateway documents for a request of this run; 501 is CONNECT's. */
const DOCUMENTED = [100, 200, 202, 400, 401, 403, 404, 405, 408, 413, 415, 431, 501]

/** Fragments that often break parsers. */
const ODD = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '"',
  '\\',
  '{',
  '}',
  '[',
  '%',
  '\x80',
  '\xff',
  '0',
  '-',
]

/** In a hundred requests, so many are one of the kinds with bytes changed at random, or only random bytes. */
const CHANGED_PERCENT = 25
const NOISE_PERCENT = 2
const MOST_CHANGES = 6
const MOST_NOISE_BYTES = 400

const kinds: readonly (readonly [string, Kind])[] = Object.entries({ ...httpKinds, ...mcpKinds })

/** Draws one request. `token` is a valid one of the caller `default/assistant`. */
export function drawMalformed(dice: Dice, token: string): Malformed {
  if (dice.chance(NOISE_PERCENT)) return { kind: 'noise', ...anything(dice.bytes(dice.below(MOST_NOISE_BYTES))) }
  const [kind, draw] = dice.one(kinds)
  const drawn = draw(dice, token)
  if (!dice.chance(CHANGED_PERCENT)) return { kind, ...drawn }
  return { kind: `changed ${kind}`, ...anything(changed(dice, drawn.bytes)) }
}

function anything(bytes: Buffer): Drawn {
  return { bytes, statuses: DOCUMENTED, answers: Number.POSITIVE_INFINITY }
}

/** A few bytes cut, doubled, swapped or put in. What must not pass is renamed, because it may have become well-formed. */
function changed(dice: Dice, bytes: Buffer): Buffer {
  let text = bytes.toString('latin1').replaceAll(CANARY, 'harmless')
  for (let changes = dice.below(MOST_CHANGES) + 1; changes > 0; changes--) {
    const at = dice.below(text.length)
    const length = dice.below(20)
    const piece = dice.one([
      () => '',
      () => dice.one(ODD),
      () => String.fromCharCode(dice.below(256)),
      () => text.slice(at, at + length).repeat(2),
    ])()
    text = text.slice(0, at) + piece + text.slice(at + (piece.length > 1 ? 0 : length))
  }
  return Buffer.from(text, 'latin1')
}
