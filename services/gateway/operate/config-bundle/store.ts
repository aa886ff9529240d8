import { hash } from 'node:crypto'
import { mkdir, open, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import type { Bundle } from '@plat/bundle'
import { parseStrict, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { type Files, systemFiles } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

/** Where the files of each bundle are, below the folder; one folder a bundle. */
const REVISIONS = '.revisions'
/** Leads to the folder of the bundle in force. Everything else leads through it, so that all files change in one step. */
const CURRENT = '.current'
/** What is being made, and not yet in its place. */
const DRAFT = '.draft'

const stateSchema = Type.Object(
  {
    version: Type.Literal(1),
    revision: Type.Integer({ minimum: 1 }),
    issuer: Type.String(),
    id: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    files: Type.Record(Type.String(), Type.String({ pattern: '^[0-9a-f]{64}$' })),
  },
  { additionalProperties: false },
)

/** The bundle in force, as `statePath` keeps it: its files by name, each with its SHA-256. */
export type InForce = Readonly<Static<typeof stateSchema>>

export interface StoreOptions {
  /** `configBundle.dir` */
  readonly dir: string
  /** `configBundle.statePath` */
  readonly statePath: string
  readonly log: Log
  readonly files?: Files
}

/**
 * The folder that a bundle is unpacked into, and the file that says which one it is. `<dir>/policies.json` leads through a link that is
 * replaced as a whole. The state is durable before its bundle is seen, so that no crash makes an older one acceptable.
 */
export class BundleStore {
  readonly #options: StoreOptions
  readonly #files: Files
  #inForce: InForce | null = null
  #placed = false

  private constructor(options: StoreOptions) {
    this.#options = options
    this.#files = options.files ?? systemFiles
  }

  /** Rejects when the state cannot be believed, or the folder holds what no bundle put there. Damaged files are taken out of use. */
  static async open(options: StoreOptions): Promise<BundleStore> {
    const store = new BundleStore(options)
    await store.#recover()
    return store
  }

  /** Null before the first bundle. */
  get inForce(): InForce | null {
    return this.#inForce
  }

  /** Whether its files are where they should be: not after damage, or when a disk failed in between. */
  get isPlaced(): boolean {
    return this.#placed
  }

  /** Puts a bundle into force. Rejects when it cannot; what was in force stays, or the same bundle may come again. */
  async put({ statement: { issuer, revision }, id, files }: Bundle): Promise<void> {
    const sums = files.map(({ name, bytes }) => [name, hash('sha256', bytes)])
    const state: InForce = { version: 1, revision, issuer, id, files: Object.fromEntries(sums) }
    await this.#unpack(folderOf(state), files)
    this.#files.replace(this.#options.statePath, Buffer.from(`${JSON.stringify(state)}\n`))
    this.#inForce = state
    this.#placed = false
    await this.#place(state)
  }

  #at(...names: readonly string[]): string {
    return path.join(this.#options.dir, ...names)
  }

  async #recover(): Promise<void> {
    const { dir, log } = this.#options
    await mkdir(this.#at(REVISIONS), { recursive: true, mode: 0o700 })
    await this.#refuseForeign()
    this.#inForce = await this.#readState()
    const state = this.#inForce
    if (state === null) return
    const damage = await this.#damage(state)
    if (damage === null) return this.#place(state)
    await rm(this.#at(CURRENT), { force: true })
    log.error(
      { dir, revision: state.revision, damage },
      'the configuration bundle in force is damaged and not used: hand it in again',
    )
  }

  /** A file that somebody put there would be used as if it were of a bundle. */
  async #refuseForeign(): Promise<void> {
    const { dir } = this.#options
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      if ([REVISIONS, CURRENT, DRAFT].includes(entry.name)) continue
      const leads = entry.isSymbolicLink() && (await readlink(this.#at(entry.name))) === path.join(CURRENT, entry.name)
      if (!leads)
        throw new Error(`configBundle.dir ${dir}: holds ${entry.name}, which no bundle put there; take it away`)
    }
  }

  /** Without a state an older bundle would be taken, so where one was applied there must be one. */
  async #readState(): Promise<InForce | null> {
    const { statePath, dir } = this.#options
    const bytes = this.#files.readWhole(statePath)
    if (bytes === null) {
      if ((await linkAt(this.#at(CURRENT))) === null) return null
      throw new Error(`configBundle.statePath ${statePath}: missing, though ${dir} holds a bundle; put it back`)
    }
    const value = strict(bytes)
    if (Check(stateSchema, value)) return value
    throw new Error(`configBundle.statePath ${statePath}: is not what was written there; put it back`)
  }

  /** Null: every file is as it was signed. */
  async #damage(state: InForce): Promise<string | null> {
    for (const [name, sum] of Object.entries(state.files)) {
      try {
        const bytes = await readFile(this.#at(REVISIONS, folderOf(state), name))
        if (hash('sha256', bytes) !== sum) return `${name} was changed`
      } catch (error) {
        return `${name} cannot be read: ${reasonOf(error)}`
      }
    }
    return null
  }

  /** A whole folder appears under its name, or none. */
  async #unpack(name: string, files: Bundle['files']): Promise<void> {
    const draft = this.#at(REVISIONS, DRAFT)
    const folder = this.#at(REVISIONS, name)
    await rm(draft, { recursive: true, force: true })
    await mkdir(draft, { mode: 0o700 })
    for (const { name: file, bytes } of files) {
      const target = path.join(draft, file)
      await mkdir(path.dirname(target), { recursive: true, mode: 0o700 })
      await using handle = await open(target, 'wx', 0o600)
      await handle.writeFile(bytes)
      await handle.sync()
    }
    for (const one of foldersOf(files.map((file) => file.name))) await syncFolder(path.join(draft, one))
    await rm(folder, { recursive: true, force: true })
    await rename(draft, folder)
    await syncFolder(this.#at(REVISIONS))
  }

  /** Lets every name lead to the bundle's files, and forgets the one before. Does nothing that is done already. */
  async #place(state: InForce): Promise<void> {
    const folder = path.join(REVISIONS, folderOf(state))
    if ((await linkAt(this.#at(CURRENT))) !== folder) await this.#link(CURRENT, folder)
    const names = new Set(Object.keys(state.files).map((name) => name.split('/', 1)[0] ?? name))
    for (const name of names) {
      const target = path.join(CURRENT, name)
      if ((await linkAt(this.#at(name))) !== target) await this.#link(name, target)
    }
    for (const name of await readdir(this.#options.dir)) {
      if (!name.startsWith('.') && !names.has(name)) await rm(this.#at(name))
    }
    await syncFolder(this.#options.dir)
    this.#placed = true
    for (const name of await readdir(this.#at(REVISIONS))) {
      if (name !== folderOf(state)) await rm(this.#at(REVISIONS, name), { recursive: true, force: true })
    }
  }

  /** Puts a link in the place of whatever is there, in one step. */
  async #link(name: string, target: string): Promise<void> {
    await rm(this.#at(DRAFT), { force: true })
    await symlink(target, this.#at(DRAFT))
    await rename(this.#at(DRAFT), this.#at(name))
  }
}

/** Name of the folder of a bundle; two of one revision have two. */
function folderOf({ revision, id }: InForce): string {
  return `${revision}-${id.slice(0, 16)}`
}

/** Every folder that these files are in, the root as `''`. */
function foldersOf(names: readonly string[]): ReadonlySet<string> {
  const folders = new Set([''])
  for (const name of names) {
    for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) folders.add(name.slice(0, at))
  }
  return folders
}

function strict(bytes: Uint8Array): unknown {
  try {
    return parseStrict(bytes)
  } catch {
    return null
  }
}

/** Where a link leads; null: there is none. */
async function linkAt(name: string): Promise<string | null> {
  try {
    return await readlink(name)
  } catch {
    return null
  }
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}
