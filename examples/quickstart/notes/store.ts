import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A name is a file name without `.md`: letters, digits, `-` and `_`, so that it can never leave the folder. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'

const name = new RegExp(NAME_PATTERN)

/** Longest note, in characters. */
export const MAX_TEXT = 10_000

/** A valid request that is refused. Returned to the model as an error of the tool. */
export class NoteError extends Error {}

/** Notes as files `<folder>/<name>.md`. */
export class NoteStore {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Names, sorted. */
  async list(): Promise<string[]> {
    await mkdir(this.#folder, { recursive: true })
    const files = await readdir(this.#folder)
    return files.flatMap((file) => (file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : [])).sort()
  }

  async read(note: string): Promise<string> {
    return await readFile(this.#path(note), 'utf8').catch((error: unknown) => unknownNote(error, note))
  }

  /** A note that exists is never overwritten. */
  async add(note: string, text: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    await writeFile(this.#path(note), text, { flag: 'wx' }).catch((error: unknown) => {
      throw hasCode(error, 'EEXIST') ? new NoteError(`There is a note "${note}" already.`) : error
    })
  }

  async delete(note: string): Promise<void> {
    await rm(this.#path(note)).catch((error: unknown) => unknownNote(error, note))
  }

  #path(note: string): string {
    if (!name.test(note)) throw new NoteError('A name has letters, digits, - and _ only, at most 64.')
    return join(this.#folder, `${note}.md`)
  }
}

function unknownNote(error: unknown, note: string): never {
  throw hasCode(error, 'ENOENT') ? new NoteError(`There is no note "${note}".`) : error
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
