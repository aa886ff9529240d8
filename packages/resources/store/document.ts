import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceDocument, splitDocuments, type TextDocument } from '../documents.ts'
import type { Manifest } from '../kinds/kinds.ts'
import { linesOfAside, readAnyManifestAside } from '../manifest-aside.ts'
import { sameManifest } from './same.ts'
import type { Place } from './tree.ts'

/**
 * Returns the text of a file after one of its objects was replaced (`body`), or removed (null); a text of null: nothing else is in the file.
 * Returns null if the file does not have the object at its place any more.
 */
export async function changedFile(given: {
  readonly dir: string
  readonly place: Place
  readonly object: Manifest
  readonly body: string | null
}): Promise<{ readonly text: string | null } | null> {
  const { dir, place, object, body } = given
  const text = await readFile(join(dir, place.file), 'utf8').catch(() => '')
  const document = documentAt(text, place)
  if (document === null) return null
  const found = await readAnyManifestAside(text.slice(document.start, document.end))
  if (found.object?.kind !== object.kind || !sameManifest(found.object, object)) return null
  return { text: replaceDocument(text, document, body) }
}

/**
 * Returns the text of the file of a changed object: `alone` if it is the only one of the file named after it (`path`), else with its document
 * replaced by `body`. Returns null if the file does not have the object at its place any more.
 */
export async function textWith(given: {
  readonly dir: string
  readonly path: string
  readonly place: Place
  readonly object: Manifest
  readonly alone: string
  readonly body: string
}): Promise<string | null> {
  const { path, alone, ...change } = given
  const without = await changedFile({ ...change, body: null })
  if (without === null) return null
  if (without.text === null && change.place.file === path) return alone
  return (await changedFile(change))?.text ?? null
}

/** Returns the line of each field of the object at a place, in its file. */
export async function linesAt(dir: string, place: Place, fields: readonly string[]): Promise<readonly number[]> {
  const text = await readFile(join(dir, place.file), 'utf8').catch(() => '')
  const document = documentAt(text, place)
  if (document === null) return fields.map(() => place.line)
  const lines = await linesOfAside(text.slice(document.start, document.end), fields)
  return lines.map((line) => document.line - 1 + line)
}

function documentAt(text: string, { line }: Place): TextDocument | null {
  return splitDocuments(text).find((document) => document.line === line) ?? null
}
