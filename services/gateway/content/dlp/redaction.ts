import { checkJson, findSpan, JsonError, runAtOnce, runInSlices, type Span, type Steps, whenReady } from '@plat/core'
import {
  type CountHit,
  type Denial,
  type DlpDirection,
  deny,
  isDenial,
  type RedactionScope,
  type Redactor,
  type TextRedactor,
} from '../../call/index.ts'
import type { Detector } from './detectors/detector.ts'
import { findInJson, redactedJson, type ScannedText } from './json/strings.ts'
import { actionFor, type Direction, type Profile } from './profile.ts'
import type { Hit } from './scan/scan-state.ts'
import { type Released, TextStream } from './stream.ts'

/** Counted when a message exceeds the scan limit of its profile. */
export const OVERSIZE = 'oversize'

/** Longest message that is redacted in one stretch of the event loop. */
const AT_ONCE_BYTES = 32 * 1024

/** Hits that are counted in one step, and texts that are filtered. */
const HITS_OF_STEP = 1024
const FOUND_OF_STEP = 1024

const WORDS = { arguments: 'the arguments hold', response: 'the answer holds' } as const

export interface RedactedMessage {
  /** Identical to the input if nothing is replaced. */
  readonly bytes: Uint8Array
  /** All hits replaced, including audited ones: for people and classifiers. */
  readonly displayed: Uint8Array
  readonly hits: number
}

/** Applies a profile to the texts of one message, or of one streamed response. */
export class Redaction implements Redactor {
  readonly #profile: Profile
  readonly #direction: Direction
  readonly #name: DlpDirection
  readonly #count: CountHit
  /** Remaining characters of the scan limit for pieces. */
  #left: number

  constructor(profile: Profile, direction: Direction, name: DlpDirection, count: CountHit) {
    this.#profile = profile
    this.#direction = direction
    this.#name = name
    this.#count = count
    this.#left = profile.maxScanBytes
  }

  *steps(json: Uint8Array, where: RedactionScope): Steps<Uint8Array | Denial> {
    return bytesOf(yield* this.#judging(json, where))
  }

  message(json: Uint8Array, where: RedactionScope): Uint8Array | Denial | Promise<Uint8Array | Denial> {
    return whenReady(this.judgeMessage(json, where), bytesOf)
  }

  judge(json: Uint8Array, where: RedactionScope): RedactedMessage | Denial {
    return runAtOnce(this.#judging(json, where))
  }

  /** Judges a message of any length, a long one in slices. */
  judgeMessage(json: Uint8Array, where: RedactionScope): RedactedMessage | Denial | Promise<RedactedMessage | Denial> {
    return json.length <= AT_ONCE_BYTES ? this.judge(json, where) : runInSlices(this.#judging(json, where))
  }

  *#judging(json: Uint8Array, where: RedactionScope): Steps<RedactedMessage | Denial> {
    const { found, isCut } = yield* findInJson(json, this.#direction.scanner, this.#profile.maxScanBytes)
    const tooLong = isCut ? this.#tooLong() : null
    if (tooLong !== null) return tooLong
    if (found.length === 0) return { bytes: json, displayed: json, hits: 0 }
    try {
      // Equal member names would make the message ambiguous.
      checkJson(json)
      yield
      return yield* this.#judgingFound(json, yield* filtered(found, allowedBy(json, where)), where)
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      return deny('upstream_error', 'the server sent what is not strict JSON')
    }
  }

  *#judgingFound(
    json: Uint8Array,
    found: readonly ScannedText[],
    where: RedactionScope,
  ): Steps<RedactedMessage | Denial> {
    const hits = found.flatMap((one) => one.hits)
    yield
    const fixed = spansOf(json, where.fixed)
    const inName = found.some((one) => fixed.some((span) => isWithin(one, span)))
    yield
    const denial = yield* this.#counting(hits)
    if (denial !== null) return inName ? unnamed(denial) : denial
    yield
    const enforced: ScannedText[] = []
    for (const [at, one] of found.entries()) {
      const replaced = one.hits.filter(this.isRedacted)
      if (replaced.length > 0) enforced.push({ ...one, hits: replaced })
      if (at % FOUND_OF_STEP === FOUND_OF_STEP - 1) yield
    }
    yield
    const unchangeable = enforced.filter((one) => fixed.some((span) => isWithin(one, span)))
    if (unchangeable.length > 0) return unnamed(this.#refuse(unchangeable.flatMap((one) => one.hits)))
    const bytes = enforced.length === 0 ? json : yield* redactedJson(json, enforced)
    if (enforced.some(({ kind }) => kind === 'name') && !isStrict(bytes)) return this.#refuse(hits)
    const isAll = enforced.length === found.length && hits.every(this.isRedacted)
    return { bytes, displayed: isAll ? bytes : yield* redactedJson(json, found), hits: hits.length }
  }

  /** Checks text that cannot be changed and is not JSON, such as a header: refused if it would be redacted. */
  fixedText(text: string): Denial | null {
    const hits = this.#direction.scanner.scan(text)
    const denial = this.#countHits(hits)
    if (denial !== null) return denial
    const enforced = hits.filter(this.isRedacted)
    return enforced.length === 0 ? null : this.#refuse(enforced)
  }

  pieces(isJson: boolean): TextRedactor {
    const { scanner } = this.#direction
    const carry = this.#profile.streamCarryBytes
    return new RedactedPieces(this, new TextStream({ scanner, carry, isRedacted: this.isRedacted, isJson }))
  }

  /** Returns whether further characters of pieces are scanned, pass unscanned, or are refused. */
  takes(chars: number): 'scanned' | 'unscanned' | Denial {
    if (this.#left < 0) return 'unscanned'
    this.#left -= chars
    return this.#left >= 0 ? 'scanned' : (this.#tooLong() ?? 'unscanned')
  }

  /** Applies actions to released text. */
  released({ text, hits }: Released): string | Denial {
    return (hits.length === 0 ? null : this.#countHits(hits)) ?? text
  }

  readonly isRedacted = ({ detector }: Pick<Hit, 'detector'>): boolean =>
    actionFor(this.#direction, detector) === 'redact'

  /** Counts hits; returns a denial if one is forbidden. */
  #countHits(hits: readonly Hit[]): Denial | null {
    return runAtOnce(this.#counting(hits))
  }

  *#counting(hits: readonly Hit[]): Steps<Denial | null> {
    for (const [at, { detector }] of hits.entries()) {
      this.#count(detector.id, this.#name, actionFor(this.#direction, detector))
      if (at % HITS_OF_STEP === HITS_OF_STEP - 1) yield
    }
    const refused = hits.filter(({ detector }) => actionFor(this.#direction, detector) === 'deny')
    return refused.length === 0 ? null : this.#refuse(refused)
  }

  #refuse(hits: readonly { readonly detector: Pick<Detector, 'id'> }[]): Denial {
    const ids = [...new Set(hits.map(({ detector }) => detector.id))].join(', ')
    return deny('dlp_denied', `${WORDS[this.#name]} ${ids}, which the DLP profile ${this.#profile.name} refuses`)
  }

  /** Returns null if the text passes unscanned. */
  #tooLong(): Denial | null {
    const { onOversize } = this.#direction
    this.#count(OVERSIZE, this.#name, onOversize)
    if (onOversize === 'audit') return null
    const { name, maxScanBytes } = this.#profile
    const reason = `${WORDS[this.#name]} more text than the ${maxScanBytes} bytes that the DLP profile ${name} reads`
    return deny('dlp_denied', reason)
  }
}

function bytesOf(judged: RedactedMessage | Denial): Uint8Array | Denial {
  return isDenial(judged) ? judged : judged.bytes
}

/** Removes the name of the call from the record of a refusal: it contains the hit. */
function unnamed(denial: Denial): Denial {
  return { ...denial, data: { unnamed: true } }
}

class RedactedPieces implements TextRedactor {
  readonly #redaction: Redaction
  readonly #stream: TextStream

  constructor(redaction: Redaction, stream: TextStream) {
    this.#redaction = redaction
    this.#stream = stream
  }

  *push(piece: string): Steps<string | Denial> {
    const takes = this.#redaction.takes(piece.length)
    if (isDenial(takes)) return takes
    if (takes === 'scanned') return this.#redaction.released(yield* this.#stream.push(piece))
    const held = this.end()
    return isDenial(held) ? held : held + piece
  }

  end(): string | Denial {
    return this.#redaction.released(this.#stream.end())
  }
}

function* filtered<T>(all: readonly T[], fits: (one: T) => boolean): Steps<readonly T[]> {
  const out: T[] = []
  for (const [at, one] of all.entries()) {
    if (fits(one)) out.push(one)
    if (at % FOUND_OF_STEP === FOUND_OF_STEP - 1) yield
  }
  return out
}

function allowedBy(json: Uint8Array, { within, except, left }: RedactionScope): (found: ScannedText) => boolean {
  const inside = within === undefined ? null : spansOf(json, within)
  const outside = spansOf(json, except)
  return (found) =>
    (inside === null || inside.some((span) => isWithin(found, span))) &&
    !outside.some((span) => isWithin(found, span)) &&
    left?.includes(nameBefore(json, found) ?? '') !== true
}

function spansOf(json: Uint8Array, paths: RedactionScope['within']): readonly Span[] {
  return (paths ?? []).flatMap((path) => {
    const span = findSpan(json, path)
    return span === null ? [] : [span]
  })
}

/** Text between strings can extend beyond its value; the positions of its hits decide. */
function isWithin({ start, end, hits, kind }: ScannedText, [first, last]: Span): boolean {
  if (kind === 'gap') return hits.every((hit) => hit.start >= first && hit.end <= last)
  return start > first && end < last
}

/** Maximum length of an unchanged member name, with the separator. */
const NAME_CHARS = 48

/** Returns the unescaped name of the member of a string value, or null. */
function nameBefore(json: Uint8Array, { start, kind }: ScannedText): string | null {
  if (kind !== 'value') return null
  const before = Buffer.from(json.subarray(Math.max(0, start - 1 - NAME_CHARS), start - 1)).toString('latin1')
  return /(?<!\\)"([A-Za-z]+)"\s*:\s*$/.exec(before)?.[1] ?? null
}

function isStrict(json: Uint8Array): boolean {
  try {
    checkJson(json)
    return true
  } catch {
    return false
  }
}
