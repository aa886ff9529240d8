import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { writeYaml } from '@plat/kubernetes'
import { API_VERSION, editorSchemaFile, type Kind, kinds, readTree, validate } from '@plat/resources'
import { makeHome, type PlatFolder } from './home.ts'
import type { Output } from './output.ts'

/** Namespace of everything that plat writes for a person. */
export const NAMESPACE = 'default'

/** A value for `.plat/secrets`, never for a resource. */
export interface DraftSecret {
  readonly name: string
  readonly key: string
  /** Null: not known here; it is reported as missing. */
  readonly value: string | null
  /** Where the value comes from: `variable OPENAI_API_KEY`. */
  readonly source: string
}

interface DraftFile {
  readonly path: string
  readonly text: string
  readonly isSecret: boolean
}

/**
 * Resources and files that a command is about to write into a folder. Nothing that exists is changed: a resource, a file or a secret of the
 * same name is kept and reported.
 */
export class Draft {
  readonly home: PlatFolder
  readonly #files: DraftFile[] = []
  readonly #existing: string[] = []
  readonly #missing: string[] = []
  /** `<Kind> <name>` of what the folder declares. */
  readonly #declared: ReadonlySet<string>

  private constructor(home: PlatFolder, declared: ReadonlySet<string>) {
    this.home = home
    this.#declared = declared
  }

  static async of(home: PlatFolder): Promise<Draft> {
    const { objects } = await readTree(join(home.dir, 'resources'))
    const own = objects.map(({ object }) => object).filter(({ metadata }) => metadata.namespace === NAMESPACE)
    return new Draft(home, new Set(own.map(({ kind, metadata }) => `${kind} ${metadata.name}`)))
  }

  has(kind: Kind, name: string): boolean {
    return this.#declared.has(`${kind} ${name}`)
  }

  /**
   * Adds a resource of the namespace `default`, with a comment for readers. Returns false if it exists.
   * @throws Error if the spec is invalid, which is a defect of the caller
   */
  resource(kind: Kind, name: string, given: { readonly spec: object; readonly comment: string }): boolean {
    const path = join('resources', kinds[kind].plural, NAMESPACE, `${name}.yaml`)
    if (this.has(kind, name)) {
      this.#existing.push(`${kind} ${NAMESPACE}/${name} exists`)
      return false
    }
    const object = { apiVersion: API_VERSION, kind, metadata: { name, namespace: NAMESPACE }, spec: given.spec }
    const [problem] = validate(kind, object)
    if (problem !== undefined) throw new Error(`${kind} ${name}: ${problem.path}: ${problem.message}`)
    const schema = relative(dirname(join(this.home.dir, path)), join(this.home.schemas, editorSchemaFile(kind)))
    const comment = given.comment.split('\n').map((line) => `# ${line}\n`)
    const head = `# yaml-language-server: $schema=${schema.replaceAll('\\', '/')}\n${comment.join('')}`
    this.#files.push({ path, text: head + writeYaml(object), isSecret: false })
    return true
  }

  /** Adds a file beside `resources/`, such as gateway.json. */
  file(path: string, text: string): void {
    this.#files.push({ path, text, isSecret: false })
  }

  /** Adds a secret, and returns its reference. A value that is not known is reported as missing. */
  secret({ name, key, value, source }: DraftSecret): { readonly name: string; readonly key: string } {
    const path = join('.plat', 'secrets', NAMESPACE, name, key)
    if (this.#files.some((file) => file.path === path)) return { name, key }
    if (value === null) {
      const line = `write the ${source} into ${path}`
      if (!this.#missing.includes(line)) this.#missing.push(line)
    } else this.#files.push({ path, text: value, isSecret: true })
    return { name, key }
  }

  /** Path of a secret, relative to the folder. */
  static secretPath({ name, key }: { readonly name: string; readonly key: string }): string {
    return ['.plat', 'secrets', NAMESPACE, name, key].join('/')
  }

  /** Writes everything that does not exist, and reports each file. Returns the lines of what the person still has to do. */
  async write(output: Output): Promise<readonly string[]> {
    await makeHome(this.home)
    for (const { path, text, isSecret } of this.#files) {
      const file = join(this.home.dir, path)
      await mkdir(dirname(file), { recursive: true, ...(isSecret && { mode: 0o700 }) })
      const isNew = await createFile(file, text, isSecret)
      output.out(isNew ? `wrote ${path}${isSecret ? ' (secret)' : ''}` : `kept ${path}: it exists`)
    }
    for (const line of this.#existing) output.out(`kept: ${line}`)
    return this.#missing
  }
}

/** Returns false if the file exists. */
async function createFile(path: string, text: string, isSecret: boolean): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx', ...(isSecret && { mode: 0o600 }) })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
