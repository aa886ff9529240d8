import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Clock, canonicalJson, type Ids, rfc3339, systemIds } from '@plat/core'
import { writeYaml } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { editorSchemaFile, type Kind, type Manifest, type Resource, type StatusOf } from '../kinds/kinds.ts'
import { MANIFEST_MAX_BYTES } from '../manifest.ts'
import { isStatus, validate, validateStatus, withDefaults } from '../validate.ts'
import { changedFile, linesAt, textWith } from './document.ts'
import { History } from './history.ts'
import { sameManifest } from './same.ts'
import { type Sidecar, Sidecars, syncFolder, writeDurably } from './sidecar.ts'
import type {
  Applied,
  ApplyOptions,
  Conflict,
  Key,
  ListOptions,
  Page,
  RemoveOptions,
  ResourceStore,
  StatusOptions,
  WatchEvent,
} from './store.ts'
import { FILES_MAX, type Place, pathOf, readTree } from './tree.ts'

/** Poll interval of the folder, in milliseconds. */
const POLL_MS = 1000

export interface FileStoreOptions {
  /** Folder of resources, as `readTree` reads it. */
  readonly dir: string
  /** Folder for data that is not in the files: uid, generation, status. Default: `.plat/state/resources` beside `dir`. */
  readonly stateDir?: string
  /** Folder with the schemas of `editorSchemas`, which written files name for editors. Default: files name none. */
  readonly schemasDir?: string
  readonly clock: Clock
  readonly ids?: Ids
  readonly log: Log
}

export interface FileStore extends ResourceStore {
  /** One line for each file that does not load: `agents/default/x.yaml:4: spec.tier: Required value`. */
  problems(): readonly string[]
  /** Polls the folder now. */
  check(): Promise<void>
  /**
   * Returns the place of each field of an object: `agents/default/x.yaml:4`. A missing field has the line of its parent; of a file that
   * cannot be read every line is 1.
   */
  locate(kind: Kind, key: Key, fields: readonly string[]): Promise<readonly string[]>
}

/** Creates a store over YAML files that people edit; the folder is polled each second and before every operation. */
export function createFileStore(options: FileStoreOptions): FileStore {
  return new YamlFiles(options)
}

interface Held {
  readonly object: Resource
  readonly sidecar: Sidecar
  readonly place: Place
}

class YamlFiles implements FileStore {
  readonly #dir: string
  readonly #schemasDir: string | null
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #log: Log
  readonly #sidecars: Sidecars
  readonly #history: History
  /** By the path of `pathOf`, wherever they are declared. */
  #held = new Map<string, Held>()
  /** Files of objects that were held until their file was broken. */
  readonly #brokenIn = new Map<string, string>()
  #problems: readonly string[] = []
  /** Paths of all files at the last poll, including invalid ones. */
  #files: ReadonlySet<string> = new Set()
  #opened = false
  /** Polls and writes run one after the other. */
  #queue: Promise<void> = Promise.resolve()
  readonly #stopPolling: () => void

  constructor({
    dir,
    stateDir = join(dirname(dir), '.plat', 'state', 'resources'),
    schemasDir,
    clock,
    ids,
    log,
  }: FileStoreOptions) {
    this.#dir = dir
    this.#schemasDir = schemasDir ?? null
    this.#clock = clock
    this.#ids = ids ?? systemIds(clock)
    this.#log = log
    this.#sidecars = new Sidecars(stateDir)
    this.#history = new History(this.#ids.uuid())
    let looking = false
    this.#stopPolling = clock.every(POLL_MS, () => {
      if (looking) return
      looking = true
      this.check()
        .catch((error: unknown) => log.error({ dir, error: String(error) }, 'resources cannot be read'))
        .finally(() => {
          looking = false
        })
    })
  }

  problems(): readonly string[] {
    return this.#problems
  }

  check(): Promise<void> {
    return this.#inTurn(() => this.#look())
  }

  close(): void {
    this.#stopPolling()
  }

  async locate(kind: Kind, key: Key, fields: readonly string[]): Promise<readonly string[]> {
    const path = pathOf(kind, key)
    const place = this.#held.get(path)?.place ?? { file: path, line: 1 }
    const lines = await linesAt(this.#dir, place, fields)
    return lines.map((line) => `${place.file}:${line}`)
  }

  async get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | null> {
    await this.check()
    const object = this.#held.get(pathOf(kind, key))?.object
    return object !== undefined && isOf(kind, object) ? object : null
  }

  async list<K extends Kind>(kind: K, { namespace, labels, limit, cursor }: ListOptions): Promise<Page<K>> {
    await this.check()
    const all = [...this.#held.values()]
      .map(({ object }) => object)
      .filter((object) => isOf(kind, object))
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) =>
        Object.entries(labels ?? {}).every(([name, value]) => metadata.labels?.[name] === value),
      )
      .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
    const rest = cursor === undefined ? all : all.filter((object) => sortKey(object) > cursor)
    const items = limit === undefined ? rest : rest.slice(0, limit)
    const last = items.at(-1)
    const next = last !== undefined && items.length < rest.length ? sortKey(last) : null
    return { items, revision: this.#history.revision, next }
  }

  async *watch<K extends Kind>(kind: K, from: string | null, signal: AbortSignal): AsyncGenerator<WatchEvent<K>> {
    let revision = from
    if (revision === null) {
      const page = await this.list(kind, {})
      for (const object of page.items) yield { type: 'ADDED', object, revision: page.revision }
      yield { type: 'BOOKMARK', revision: page.revision }
      revision = page.revision
    }
    const at = this.#history.position(revision)
    if (at === null) yield { type: 'GONE' }
    else yield* this.#history.follow(at, (object) => isOf(kind, object), signal)
  }

  async apply<K extends Kind>(manifest: Manifest<K>, options: ApplyOptions): Promise<Applied<K>> {
    const problems = validate(manifest.kind, manifest)
    if (problems.length > 0) return { kind: 'invalid', problems }
    return this.#inTurn(async () => {
      await this.#look()
      return this.#apply(manifest, options)
    })
  }

  async #apply<K extends Kind>(manifest: Manifest<K>, options: ApplyOptions): Promise<Applied<K>> {
    const { owner, force, dryRun } = options
    const path = pathOf(manifest.kind, manifest.metadata)
    const filled = withDefaults(manifest.kind, manifest)
    const held = this.#held.get(path)
    const unmet = this.#unmet(path, held, options)
    if (unmet !== null) return unmet
    if (held !== undefined && isOf(manifest.kind, held.object)) {
      if (sameManifest(held.object, filled)) return { kind: 'applied', object: held.object }
      if (held.sidecar.owner !== owner && force !== true) {
        const other = held.sidecar.owner ?? 'a person'
        return { kind: 'conflict', reason: `${path} was last written by ${other}: apply with force to take it over` }
      }
    }
    const sidecar = this.#next(filled, held?.sidecar ?? null, owner)
    const place = held?.place ?? { file: path, line: 1 }
    const alone = this.#schemaComment(manifest.kind, path) + textOf(manifest)
    const text =
      held === undefined ? alone : await textWith({ dir: this.#dir, path, ...held, alone, body: textOf(manifest) })
    if (text === null) return conflict(`${place.file} has changed`)
    if (Buffer.byteLength(text) > MANIFEST_MAX_BYTES) {
      return {
        kind: 'invalid',
        problems: [{ path: '', message: `Too long: may not be more than ${MANIFEST_MAX_BYTES} bytes` }],
      }
    }
    if (dryRun !== true) {
      await this.#sidecars.write(path, sidecar)
      await writeDurably(join(this.#dir, place.file), text)
    }
    const object = resourceOf(manifest.kind, filled, sidecar, this.#history.nextRevision)
    if (dryRun !== true) this.#put(path, { object, sidecar, place })
    return { kind: 'applied', object }
  }

  /** The comment by which editors with yaml-language-server find the schema of a file. */
  #schemaComment(kind: Kind, path: string): string {
    if (this.#schemasDir === null) return ''
    const schema = relative(dirname(join(this.#dir, path)), join(this.#schemasDir, editorSchemaFile(kind)))
    return `# yaml-language-server: $schema=${schema.replaceAll('\\', '/')}\n`
  }

  /** A file that a person is editing must not be replaced, and the revision that was read must still be the last. */
  #unmet(path: string, held: Held | undefined, { create, revision }: ApplyOptions): Conflict | null {
    const broken = this.#files.has(path) ? path : this.#brokenIn.get(path)
    if (held === undefined && broken !== undefined)
      return conflict(`${broken} does not load: mend it or remove it first`)
    if (create === true && held !== undefined) return conflict(`${path} is there already`)
    if (held === undefined && this.#files.size >= FILES_MAX) return conflict(`there are ${FILES_MAX} files already`)
    if (revision === undefined || held?.object.metadata.resourceVersion === revision) return null
    return conflict(`${path} has changed`)
  }

  async applyStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: StatusOf<K>,
    { dryRun, revision }: StatusOptions = {},
  ): Promise<Applied<K> | null> {
    const problems = validateStatus(kind, status)
    if (problems.length > 0) return { kind: 'invalid', problems }
    return this.#inTurn(async () => {
      await this.#look()
      const path = pathOf(kind, key)
      const held = this.#held.get(path)
      if (held === undefined || !isOf(kind, held.object)) return null
      if (revision !== undefined && revision !== held.object.metadata.resourceVersion)
        return conflict(`${path} has changed`)
      if (canonicalJson(held.object.status ?? {}) === canonicalJson(status))
        return { kind: 'applied', object: held.object }
      const sidecar = { ...held.sidecar, status }
      const { place } = held
      const object = resourceOf(kind, held.object, sidecar, this.#history.nextRevision)
      if (dryRun === true) return { kind: 'applied', object }
      await this.#sidecars.write(path, sidecar)
      this.#put(path, { object, sidecar, place })
      return { kind: 'applied', object }
    })
  }

  async remove(kind: Kind, key: Key, { uid, revision }: RemoveOptions = {}) {
    return this.#inTurn(async () => {
      await this.#look()
      const path = pathOf(kind, key)
      const held = this.#held.get(path)
      if (held === undefined) return 'missing' as const
      const { metadata } = held.object
      if (uid !== undefined && uid !== metadata.uid) return conflict(`${path} has uid ${metadata.uid}`)
      if (revision !== undefined && revision !== metadata.resourceVersion) return conflict(`${path} has changed`)
      const changed = await changedFile({ dir: this.#dir, ...held, body: null })
      if (changed === null) return conflict(`${held.place.file} has changed`)
      const file = join(this.#dir, held.place.file)
      if (changed.text !== null) await writeDurably(file, changed.text)
      else {
        await rm(file, { force: true })
        await syncFolder(dirname(file))
      }
      await this.#drop(path, held, 'removed')
      return 'removed' as const
    })
  }

  async #look(): Promise<void> {
    const tree = await readTree(this.#dir)
    const found = new Map(tree.objects.map((one) => [pathOf(one.object.kind, one.object.metadata), one]))
    // The sidecars of objects in a broken file are kept: their names cannot be read.
    if (!this.#opened && tree.broken.size === 0) await this.#sidecars.keepOnly(new Set(found.keys()))
    this.#opened = true
    this.#files = tree.files
    for (const [path, held] of [...this.#held]) {
      // A file that is invalid for a moment keeps its identity and its status.
      if (!found.has(path)) await this.#drop(path, held, tree.broken.has(held.place.file) ? 'broken' : 'removed')
    }
    for (const [path, file] of this.#brokenIn) if (!tree.broken.has(file)) this.#brokenIn.delete(path)
    for (const [path, { object, place }] of found) await this.#meet(path, object, place)
    this.#report(tree.problems)
  }

  /** Applies the content of a file; an unchanged file has no effect. */
  async #meet(path: string, manifest: Manifest, place: Place): Promise<void> {
    const held = this.#held.get(path)
    this.#brokenIn.delete(path)
    if (held !== undefined && sameManifest(held.object, manifest)) {
      this.#held.set(path, { ...held, place })
      return
    }
    const before = held?.sidecar ?? (await this.#sidecars.read(path))
    const edited = before !== null && before.specSha256 !== digest(manifest.spec)
    const sidecar = this.#next(manifest, before, edited || before === null ? null : before.owner)
    if (before === null || edited) await this.#sidecars.write(path, sidecar)
    const object = resourceOf(manifest.kind, manifest, sidecar, this.#history.nextRevision)
    this.#put(path, { object, sidecar, place })
  }

  #next(manifest: Manifest, before: Sidecar | null, owner: string | null): Sidecar {
    const specSha256 = digest(manifest.spec)
    if (before === null) {
      return { uid: this.#ids.uuid(), generation: 1, createdAt: rfc3339(this.#clock.now()), specSha256, owner }
    }
    const generation = before.generation + (before.specSha256 === specSha256 ? 0 : 1)
    return { ...before, generation, specSha256, owner }
  }

  #put(path: string, held: Held): void {
    const type = this.#held.has(path) ? 'MODIFIED' : 'ADDED'
    this.#held.set(path, held)
    this.#history.push({ type, object: held.object })
  }

  async #drop(path: string, held: Held, why: 'removed' | 'broken'): Promise<void> {
    if (why === 'removed') await this.#sidecars.remove(path)
    else this.#brokenIn.set(path, held.place.file)
    this.#held.delete(path)
    this.#history.push({ type: 'DELETED', object: held.object })
  }

  #report(problems: readonly string[]): void {
    const known = new Set(this.#problems)
    for (const problem of problems)
      if (!known.has(problem)) this.#log.error({ dir: this.#dir, problem }, 'resource refused')
    this.#problems = problems
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.then(
      () => {},
      () => {},
    )
    return result
  }
}

function isOf<K extends Kind>(kind: K, object: Resource): object is Resource<K> {
  return object.kind === kind
}

function sortKey({ metadata }: Resource): string {
  return `${metadata.namespace}/${metadata.name}`
}

function conflict(reason: string) {
  return { kind: 'conflict', reason } as const
}

/** Formats an object as people write it: without an empty namespace. */
function textOf({ metadata: { namespace, ...metadata }, ...manifest }: Manifest): string {
  const { apiVersion, kind, spec } = manifest
  const named = namespace === '' ? metadata : { ...metadata, namespace }
  return writeYaml({ apiVersion, kind, metadata: named, spec })
}

function digest(spec: unknown): string {
  return createHash('sha256').update(canonicalJson(spec)).digest('hex')
}

function resourceOf<K extends Kind>(kind: K, manifest: Manifest<K>, sidecar: Sidecar, revision: string): Resource<K> {
  const { name, namespace, labels, annotations } = manifest.metadata
  return {
    apiVersion: manifest.apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      uid: sidecar.uid,
      resourceVersion: revision,
      generation: sidecar.generation,
      creationTimestamp: sidecar.createdAt,
    },
    spec: manifest.spec,
    ...(isStatus(kind, sidecar.status) && { status: sidecar.status }),
  }
}
