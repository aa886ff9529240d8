import { linesOf } from '@plat/resources'
import type { Output } from '../shared/output.ts'
import { plain } from '../shared/output.ts'

/** A field that plat has no equivalent of, with the reason and what to do instead. */
interface Note {
  readonly path: string
  readonly why: string
}

/** Collects what could not be converted, and prints it with lines of the file. */
export class Notes {
  readonly #notes: Note[] = []

  add(path: string, why: string): void {
    this.#notes.push({ path, why })
  }

  get count(): number {
    return this.#notes.length
  }

  /** `<file>:<line>: <field>: not converted: <why>`, in the order of the file. */
  print(file: string, text: string, output: Output): void {
    const lines = linesOf(
      text,
      this.#notes.map(({ path }) => path),
    )
    const sorted = this.#notes
      .map(({ path, why }, index) => ({ line: lines[index] ?? 1, text: `${path}: not converted: ${why}` }))
      .toSorted((a, b) => a.line - b.line)
    for (const note of sorted) output.err(plain(`${file}:${note.line}: ${note.text}`))
  }
}
