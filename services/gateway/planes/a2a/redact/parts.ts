import { isObject, type JsonObject, type Steps } from '@plat/core'
import { type Denial, isDenial, type TextRedactor } from '../../../call/index.ts'

/** Returns true for text parts of a message or an artifact. */
function isText(part: unknown): part is JsonObject & { readonly text: string } {
  return isObject(part) && typeof part.text === 'string'
}

/** Redacts the texts of parts as one text. Text held back at the end is returned with the next parts, or now if `ends`. */
export function* redactedParts(
  parts: readonly unknown[],
  pieces: TextRedactor,
  ends: boolean,
): Steps<readonly unknown[] | Denial> {
  const last = parts.findLastIndex(isText)
  const out: unknown[] = []
  for (const [at, part] of parts.entries()) {
    const text = isText(part) ? yield* released(pieces, part.text, ends && at === last) : null
    if (isDenial(text)) return text
    out.push(text === null || !isObject(part) ? part : { ...part, text })
  }
  const rest = ends && last === -1 ? pieces.end() : ''
  if (isDenial(rest)) return rest
  return rest === '' ? out : [...out, { text: rest }]
}

function* released(pieces: TextRedactor, text: string, ends: boolean): Steps<string | Denial> {
  const now = yield* pieces.push(text)
  if (!ends || isDenial(now)) return now
  const rest = pieces.end()
  return isDenial(rest) ? rest : now + rest
}

/**
 * Redacts each list of `parts` with several texts as one text, because agents store streamed text as one part per piece, which readers
 * join. Numbers keep their source text. Returns the value itself if it has no such list.
 */
export function* joinedParts(value: unknown, pieces: () => TextRedactor): Steps<unknown> {
  if (Array.isArray(value)) return yield* joinedLists(value, pieces)
  if (!isObject(value) || JSON.isRawJSON(value)) return value
  let isChanged = false
  const members = Object.entries(value)
  for (const entry of members) {
    const [name, member] = entry
    const isSplit = name === 'parts' && Array.isArray(member) && member.filter(isText).length > 1
    let redacted: unknown = member
    if (isSplit) redacted = yield* redactedParts(member, pieces(), true)
    else if (typeof member === 'object') redacted = yield* joinedParts(member, pieces)
    if (isDenial(redacted)) return redacted
    isChanged ||= redacted !== member
    entry[1] = redacted
  }
  return isChanged ? Object.fromEntries(members) : value
}

/** Elements of a list that are joined in one step. */
const ELEMENTS_OF_STEP = 256

/** Returns the list itself if no element changed, or the first denial. */
function* joinedLists(list: readonly unknown[], pieces: () => TextRedactor): Steps<unknown> {
  const out: unknown[] = []
  for (const element of list) {
    out.push(typeof element === 'object' ? yield* joinedParts(element, pieces) : element)
    if (out.length % ELEMENTS_OF_STEP === 0) yield
  }
  return out.find(isDenial) ?? (out.some((element, at) => element !== list[at]) ? out : list)
}
