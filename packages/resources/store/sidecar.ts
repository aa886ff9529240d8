import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { isMissing } from './tree.ts'

const sidecarSchema = Type.Object({
  uid: Type.String(),
  generation: Type.Integer(),
  createdAt: Type.String(),
  specSha256: Type.String(),
  /** Last owner of the spec; null: edited by a person. */
  owner: Type.Union([Type.String(), Type.Null()]),
  status: Type.Optional(Type.Unknown()),
})

/** Metadata of an object that its YAML file does not contain. */
export type Sidecar = Static<typeof sidecarSchema>

/**
 * Stores metadata beside the YAML files, one JSON file per object, so that the files contain only what people wrote: identity, generation and status
 * survive restarts. A lost or damaged sidecar loses exactly these.
 */
export class Sidecars {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = dir
  }

  async read(path: string): Promise<Sidecar | null> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#file(path), 'utf8'))
      return Value.Check(sidecarSchema, value) ? value : null
    } catch (error) {
      if (isMissing(error) || error instanceof SyntaxError) return null
      throw error
    }
  }

  async write(path: string, sidecar: Sidecar): Promise<void> {
    await writeWhole(this.#file(path), `${JSON.stringify(sidecar, null, 2)}\n`)
  }

  async remove(path: string): Promise<void> {
    await rm(this.#file(path), { force: true })
  }

  /** Drops objects whose files were removed while no process watched. */
  async keepOnly(paths: ReadonlySet<string>): Promise<void> {
    const files = new Set([...paths].map((path) => this.#file(path)))
    let found: string[]
    try {
      found = await readdir(this.#dir, { recursive: true })
    } catch (error) {
      if (isMissing(error)) return
      throw error
    }
    for (const name of found) {
      const file = join(this.#dir, name)
      if (file.endsWith('.json') && !files.has(file)) await rm(file, { force: true })
    }
  }

  #file(path: string): string {
    return join(this.#dir, path.replace(/\.yaml$/, '.json'))
  }
}

/** Writes a file atomically: under a hidden name, then renamed. Modes 0700 and 0600. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = temporaryOf(path)
  await writeFile(temporary, text, { mode: 0o600 })
  await rename(temporary, path)
}

/** Like `write`, but durable when it resolves: file and folder are synced. For data whose storage is acknowledged. */
export async function writeDurably(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = temporaryOf(path)
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await rename(temporary, path)
  await syncFolder(dirname(path))
}

/** A new or removed entry survives a power failure only after its folder was synced. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

function temporaryOf(path: string): string {
  return join(dirname(path), `.${path.slice(dirname(path).length + 1)}.tmp`)
}
