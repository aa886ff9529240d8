import { hash } from 'node:crypto'
import { mkdir, open, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import type { Bundle } from '@plat/bundle'
import { parseStrict, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { type Files, systemFiles } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

/** Subfolder with one folder for each bundle. */
const REVISIONS = '.revisions'
/** Link to the folder of the bundle in force. All other links go through it, so that all files change in one step. */
const CURRENT = '.current'
/** Prefix of files that are being written and not yet in their place. */
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

/** The bundle in force, as stored in `statePath`: its files by name, each with its SHA-256. */
export type InForce = Readonly<Static<typeof stateSchema>>

export interface StoreOptions {
  readonly dir: string
  readonly statePath: string
  readonly log: Log
  readonly files?: Files
}

/**
 * The folder that bundles are unpacked into, and the state file that names the one in force. `<dir>/policies.json` goes through a link that
 * is replaced atomically. The state is durable before its bundle is visible, so that no crash makes an older one acceptable.
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

  /** Rejects if the state is damaged, or the folder holds files of no bundle. Damaged files are disabled. */
  static async open(options: StoreOptions): Promise<BundleStore> {
    const store = new BundleStore(options)
    await store.#recover()
    return store
  }

  /** Null before the first bundle. */
  get inForce(): InForce | null {
    return this.#inForce
  }

  /** Whether the links lead to the bundle's files: false after damage, or when a disk failed during `put`. */
  get isPlaced(): boolean {
    return this.#placed
  }

  /** Applies a bundle. Rejects if it cannot; the previous one stays in force, or the same bundle can be offered again. */
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
      'the configuration bundle in force is damaged and not used: submit it again',
    )
  }

  /** Refuses foreign files in the folder: they would be used as if they were signed. */
  async #refuseForeign(): Promise<void> {
    const { dir } = this.#options
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      if ([REVISIONS, CURRENT, DRAFT].includes(entry.name)) continue
      const leads = entry.isSymbolicLink() && (await readlink(this.#at(entry.name))) === path.join(CURRENT, entry.name)
      if (!leads) throw new Error(`configBundle.dir ${dir}: holds ${entry.name}, which belongs to no bundle; remove it`)
    }
  }

  /** A folder with bundles must have a state: without one an older bundle would be accepted. */
  async #readState(): Promise<InForce | null> {
    const { statePath, dir } = this.#options
    const bytes = this.#files.readWhole(statePath)
    if (bytes === null) {
      if ((await linkAt(this.#at(CURRENT))) === null) return null
      throw new Error(`configBundle.statePath ${statePath}: missing, though ${dir} holds a bundle; put it back`)
    }
    const value = strict(bytes)
    if (Check(stateSchema, value)) return value
    throw new Error(`configBundle.statePath ${statePath}: is damaged; restore it from a backup`)
  }

  /** Returns null if every file has its signed digest. */
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

  /** Creates the folder of a bundle atomically. */
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

  /** Points every name to the bundle's files, and removes the previous bundle. Idempotent. */
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

  /** Replaces `name` by a link, atomically. */
  async #link(name: string, target: string): Promise<void> {
    await rm(this.#at(DRAFT), { force: true })
    await symlink(target, this.#at(DRAFT))
    await rename(this.#at(DRAFT), this.#at(name))
  }
}

/** Name of a bundle's folder; two bundles of the same revision have different ones. */
function folderOf({ revision, id }: InForce): string {
  return `${revision}-${id.slice(0, 16)}`
}

/** Returns every folder of these files, the root as `''`. */
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

/** Returns the target of a link, or null if there is no link. */
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
