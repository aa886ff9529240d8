import type { Pkcs11Uri } from '@plat/keys'
import { RefusedError, runPublic, runTool, type ToolOptions } from './tool.ts'

export interface TokenSlot {
  readonly slot: string
  readonly serial: string
}

export type ObjectKind = 'private' | 'secret'

/** Finds the one token that a key names. Throws when there is none, or more than one. */
export async function findToken(options: ToolOptions, { token, serial }: Pkcs11Uri): Promise<TokenSlot> {
  const listed = (await runPublic(options, ['--list-token-slots'])).toString('utf8')
  const fitting = tokensIn(listed).filter(
    (one) => fits(token, one.label) && fits(serial, one.serial) && one.serial !== '',
  )
  const [first, second] = fitting
  if (first === undefined) throw new Error('no token of this name is there')
  if (second !== undefined) throw new RefusedError('several tokens fit: add serial=<number> to the URI')
  return first
}

/** Returns the tokens of a listing. */
export function tokensIn(listed: string): readonly (TokenSlot & { readonly label: string })[] {
  return listed.split(/^(?=Slot \d)/m).flatMap((text) => {
    const slot = /^Slot \d+ \((0x[0-9a-f]+)\)/.exec(text)?.[1]
    if (slot === undefined) return []
    return [{ slot, label: memberOf(text, 'token label'), serial: memberOf(text, 'serial num') }]
  })
}

function fits(wanted: string | null, found: string): boolean {
  return wanted === null || wanted === found
}

/** Value of a line `<name>: <value>`, without surrounding spaces; empty if there is none. */
function memberOf(text: string, name: string): string {
  for (const line of text.split('\n')) {
    const at = line.indexOf(':')
    if (at !== -1 && line.slice(0, at).trim() === name) return line.slice(at + 1).trim()
  }
  return ''
}

const HEADS: Readonly<Record<ObjectKind, RegExp>> = {
  private: /^Private Key Object/,
  secret: /^Secret Key Object; AES length 32/,
}

/** Returns the id of the one key that fits, in hexadecimal. `pkcs11-tool` selects by id only: with a label alone it uses any key. */
export async function findKey(
  options: ToolOptions,
  { slot }: TokenSlot,
  key: Pkcs11Uri,
  kind: ObjectKind,
): Promise<string> {
  const listed = (await runTool(options, ['--slot', slot, '--list-objects'])).toString('utf8')
  const [first, second] = keysIn(listed, key, kind)
  const what = kind === 'private' ? 'private key' : 'AES key of 256 bits'
  if (first === undefined) throw new RefusedError(`the token has no ${what} of this name`)
  if (second !== undefined) throw new RefusedError(`several keys fit: add id=%<hex> to the URI`)
  return first
}

/** Returns the ids of the keys of a listing that fit, in hexadecimal. */
export function keysIn(
  listed: string,
  { object, id }: Pick<Pkcs11Uri, 'object' | 'id'>,
  kind: ObjectKind,
): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const text of listed.split(/^(?=\S)/m)) {
    if (!HEADS[kind].test(text)) continue
    const foundId = memberOf(text, 'ID').toLowerCase()
    if (fits(object, memberOf(text, 'label')) && fits(id, foundId) && /^(?:[0-9a-f]{2})+$/.test(foundId))
      ids.add(foundId)
  }
  return ids
}
