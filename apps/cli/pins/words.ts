import { isObject, parseLossless } from '@plat/core'

/**
 * Returns the differences of two definitions in canonical form, member by member: `- ` lines of the pinned one, `+ ` lines of
 * the offered one. Null is an unknown definition.
 */
export function differingLines(pinned: string | null, offered: string | null): string[] {
  const before = members(pinned)
  const after = members(offered)
  const lines: string[] = []
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const old = before.get(name)
    const now = after.get(name)
    if (old === now) continue
    lines.push(visible(name))
    if (old !== undefined) lines.push(...indented('- ', old))
    if (now !== undefined) lines.push(...indented('+ ', now))
  }
  return lines
}

function members(text: string | null): ReadonlyMap<string, string> {
  const definition: unknown = text === null ? {} : parseLossless(text)
  if (!isObject(definition)) return new Map()
  return new Map(Object.entries(definition).map(([name, value]) => [name, JSON.stringify(value, null, 2)]))
}

function indented(mark: string, text: string): string[] {
  return text.split('\n').map((line) => `  ${mark}${visible(line)}`)
}

/**
 * Escapes characters that a terminal would hide, execute or combine with others, so that approvers see every character that
 * the agent's model gets.
 */
function visible(text: string): string {
  return text.replace(/[^\P{C}]|[^\P{Z} ]|\p{M}/gu, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`)
}
