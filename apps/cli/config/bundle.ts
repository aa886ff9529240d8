import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { writeBundle } from '@plat/bundle'
import { type Clock, reasonOf } from '@plat/core'
import { withKeys } from '../shared/keys.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'
import { readDuration } from '../shared/times.ts'

export interface MakeBundle {
  readonly folder: string
  readonly revision: string
  readonly issuer: string
  readonly keys: readonly string[]
  readonly out: string
  /** Duration; empty: it does not expire. */
  readonly expires: string
  readonly output: Format
  readonly clock: Clock
}

/** Packs and signs the files of a folder (docs/spec/gateway.md, `configBundle`). Hidden files stay behind; whatever else is not a plain file is refused. */
export async function makeBundle(options: MakeBundle, output: Output): Promise<number> {
  const { folder, issuer, keys, out, clock } = options
  const revision = /^[1-9]\d{0,15}$/.test(options.revision) ? Number(options.revision) : Number.NaN
  if (!Number.isSafeInteger(revision)) throw new CommandError('-revision: must be a whole number from 1 on')
  const issuedAt = Math.floor(clock.now() / 1000)
  const expiresAt =
    options.expires === '' ? null : issuedAt + Math.floor(readDuration(options.expires, 'expires') / 1000)
  try {
    const files = await filesOf(resolve(folder))
    const statement = { issuer, revision, issuedAt, notBefore: null, expiresAt }
    const bundle = await withKeys(async (store) => {
      const signers = await Promise.all(keys.map((key) => store.openSigner(key)))
      return await writeBundle({ statement, files }, signers)
    })
    await writeFile(out, bundle)
    printObject(output, options.output, { bundle: out, revision, files: files.length })
  } catch (error) {
    throw new CommandError(reasonOf(error))
  }
  return 0
}

async function filesOf(folder: string): Promise<{ name: string; bytes: Uint8Array }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files: { name: string; bytes: Uint8Array }[] = []
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    const name = path
      .slice(folder.length + 1)
      .split(sep)
      .join('/')
    if (entry.isDirectory() || name.split('/').some((part) => part.startsWith('.'))) continue
    if (!entry.isFile()) throw new Error(`${path}: is not a regular file`)
    files.push({ name, bytes: await readFile(path) })
  }
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
