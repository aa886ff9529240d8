import { reasonOf } from '@plat/core'
import type { Manifest } from '@plat/resources'
import { type Declared, keyOf, objectKeyOf } from '../render/declared.ts'
import { OVER_SHARE } from '../render/size/shares.ts'

/** One field (a path below `spec`, or of `metadata`) that the gateway could not enforce, with the reason. */
export interface Problem {
  readonly path: string
  readonly why: string
}

export const EMPTY = 'must not be empty'

/** The members of a list that are empty texts: a gateway would refuse the whole file for one of them. */
export function emptyMembers(path: string, list: readonly string[] = []): Problem[] {
  return list.flatMap((text, index) => (text === '' ? [{ path: `${path}[${index}]`, why: EMPTY }] : []))
}

/** One line: `ToolPolicy default/x rules[2].action: not built yet in this version`. */
export function problemLine(object: Manifest, problem: Problem): string {
  // A message may quote half of a character; no reader accepts that.
  return `${object.kind} ${keyOf(object)} ${problem.path}: ${problem.why}`.toWellFormed()
}

/** Splits what `problemLine` wrote into `<Kind> <namespace>/<name>` and `<path>: <why>`. */
export function partsOfLine(line: string): { readonly object: string; readonly why: string } {
  const end = line.indexOf(' ', line.indexOf(' ') + 1)
  return { object: line.slice(0, end), why: line.slice(end + 1) }
}

/** Whether an object is left out because a file of all namespaces would otherwise be too large. */
export function shareProblems(object: Manifest, { oversized }: Pick<Declared, 'oversized'>): Problem[] {
  const file = oversized?.get(objectKeyOf(object))
  return file === undefined ? [] : [{ path: 'metadata.name', why: `${OVER_SHARE} in ${file}` }]
}

/** Runs the checks of one object. One that fails itself refuses the object, and keeps no other from being rendered. */
export function checked(check: () => Problem[]): Problem[] {
  try {
    return check()
  } catch (error) {
    return [{ path: 'spec', why: `cannot be checked: ${reasonOf(error)}` }]
  }
}

/** On files a Secret is a folder and each of its keys a file in it. */
const FILE_NAME = /^(?!\.+$)[-._a-zA-Z0-9]+$/

/** Names that begin so belong to the servers that the gateway has built in. */
export const RESERVED_PREFIX = 'plat-'

/** Returns a problem if name and key of a reference cannot be file names. */
export function fileNames(path: string, ref: { readonly name: string; readonly key?: string }): Problem[] {
  const usable = FILE_NAME.test(ref.name) && (ref.key === undefined || FILE_NAME.test(ref.key))
  return usable ? [] : [{ path, why: 'name and key must be usable as file names' }]
}

/** URLs that the gateway's files accept; a URL parser accepts more, such as `http:///host`. */
const HTTP_URL = /^https?:\/\/[^/@\s]+/

/** A URL that cannot be called, or one whose credentials would end in a rendered file. */
export function urlProblem(path: string, text: string): Problem | null {
  const url = URL.parse(text)
  if (url !== null && url.username === '' && url.password === '' && !HTTP_URL.test(text))
    return { path, why: 'must read http(s)://<host>' }
  if (url === null) return { path, why: 'not a URL' }
  return url.username === '' && url.password === '' ? null : { path, why: 'must not hold credentials' }
}

export function reservedName(path: string): Problem {
  return { path, why: `names that begin with "${RESERVED_PREFIX}" are built in` }
}
