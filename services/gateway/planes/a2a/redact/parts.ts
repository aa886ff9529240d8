import { type Denial, isDenial, type TextRedactor } from '../../../call/index.ts'
import { isObject, type JsonObject } from '../../wire/json.ts'

/** Whether a part of a message or an artifact is text. */
function isText(part: unknown): part is JsonObject & { readonly text: string } {
  return isObject(part) && typeof part.text === 'string'
}

/** Parts whose texts have gone through `pieces` as one. What is held back at the end comes with the next parts, or now where `ends`. */
export function redactedParts(
  parts: readonly unknown[],
  pieces: TextRedactor,
  ends: boolean,
): readonly unknown[] | Denial {
  const last = parts.findLastIndex(isText)
  const out: unknown[] = []
  for (const [at, part] of parts.entries()) {
    const text = isText(part) ? released(pieces, part.text, ends && at === last) : null
    if (isDenial(text)) return text
    out.push(text === null || !isObject(part) ? part : { ...part, text })
  }
  const rest = ends && last === -1 ? pieces.end() : ''
  if (isDenial(rest)) return rest
  return rest === '' ? out : [...out, { text: rest }]
}

function released(pieces: TextRedactor, text: string, ends: boolean): string | Denial {
  const now = pieces.push(text)
  if (!ends || isDenial(now)) return now
  const rest = pieces.end()
  return isDenial(rest) ? rest : now + rest
}

/**
 * A JSON value in which each list of `parts` with several texts has gone through pieces of its own: agents put together what they have
 * streamed as one part a piece, and readers join them again. Numbers with a source text are kept. The value itself where there is none.
 */
export function joinedParts(value: unknown, pieces: () => TextRedactor): unknown {
  if (Array.isArray(value)) return changed(value, (element) => joinedParts(element, pieces))
  if (!isObject(value) || JSON.isRawJSON(value)) return value
  let isChanged = false
  const members = Object.entries(value)
  for (const entry of members) {
    const [name, member] = entry
    const isSplit = name === 'parts' && Array.isArray(member) && member.filter(isText).length > 1
    const told = isSplit ? redactedParts(member, pieces(), true) : joinedParts(member, pieces)
    if (isDenial(told)) return told
    isChanged ||= told !== member
    entry[1] = told
  }
  return isChanged ? Object.fromEntries(members) : value
}

/** The list itself where no element changed; the denial of the first that is refused. */
function changed(list: readonly unknown[], change: (element: unknown) => unknown): unknown {
  const out = list.map(change)
  return out.find(isDenial) ?? (out.some((element, at) => element !== list[at]) ? out : list)
}
