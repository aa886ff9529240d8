/** Tables of the clients that are tested: which ones, and how the cases of a run ended. */
import type { Client } from './clients.ts'
import type { Way } from './page.ts'
import type { Step } from './scenario.ts'

const WAYS: readonly Way[] = ['Under plat run', 'With a token', 'At one address']

/** Returns the table of docs/agents/README.md. */
export function clientTable(clients: readonly Client[]): string {
  const rows = clients.map(({ name, version, ways }) => [name, version, ...WAYS.map((way) => mark(ways.includes(way)))])
  return table(['client', 'version', ...WAYS.map((way) => way.toLowerCase())], rows)
}

const mark = (isTested: boolean) => (isTested ? 'yes' : '')

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return lines
    .join('\n')
    .replaceAll(/ {2}\|/g, ' |')
    .replaceAll('| --- ', '|---')
    .replaceAll('--- |', '---|')
}

/** Results of the clients in a run. */
export class Matrix {
  readonly #steps: readonly Step[]
  readonly #rows: (readonly string[])[] = []

  constructor(steps: readonly Step[]) {
    this.#steps = steps
  }

  /** Adds a run with the texts that the client read at the end of each step. */
  add({ name, version }: Client, way: Way, texts: readonly string[]): void {
    const cells = this.#steps.map(({ reads }, at) => (reads.test(texts[at] ?? '') ? '✓' : '✗'))
    this.#rows.push([`${name} ${version}`, way.toLowerCase(), ...cells])
  }

  /** Returns a table of client × server × case. */
  get text(): string {
    const cases = this.#steps.map(({ server, shows }) => `${server}: ${shows}`)
    return table(['client', 'way', ...cases], this.#rows.toSorted(byName))
  }
}

function byName([a = '', b = '']: readonly string[], [c = '', d = '']: readonly string[]): number {
  return `${a} ${b}` < `${c} ${d}` ? -1 : 1
}
