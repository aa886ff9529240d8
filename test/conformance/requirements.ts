import { readFileSync } from 'node:fs'
import path from 'node:path'

const SPEC = path.resolve(import.meta.dirname, '../../docs/spec')

/** The pages of the contract: the broker API (D1), the CRDs (D2) and `gateway.json` with endpoints and metrics (D3). */
export const PAGES = { D1: 'broker-api.md', D2: 'crds.md', D3: 'gateway.md' } as const

export type DocumentName = keyof typeof PAGES

/** One row of `docs/spec/`: a key, rule, flag, claim, endpoint, error, limit, series or alert. */
export interface Requirement {
  /** `<document>.<section>.<key>`, for example `D1.mint.ttlSeconds`. Stable: tests cite it. */
  readonly id: string
  readonly document: DocumentName
  readonly key: string
  /** The requirement in one sentence, in Markdown. */
  readonly text: string
}

const ROW = /^\| `((D[123])\.[\w-]+\.([\w.-]+))` \| (.+) \|$/

/** Reads the rows of a page. Throws an Error that names the line of a table row without a valid id. */
export function readRows(document: DocumentName, page: string): readonly Requirement[] {
  return page.split('\n').flatMap((line, at) => {
    if (!line.startsWith('| ') || line === '| Id | Requirement |') return []
    const [, id, of, key, text] = ROW.exec(line) ?? []
    if (id === undefined || key === undefined || text === undefined || of !== document)
      throw new Error(
        `docs/spec/${PAGES[document]}:${at + 1}: a row must begin with an id such as ${document}.mint.scopes`,
      )
    return [{ id, document, key, text }]
  })
}

/** Every row of `docs/spec/`. A test says which it shows: `// Shows D1.mint.ttlSeconds.` inside its body. */
export const requirements: readonly Requirement[] = (['D1', 'D2', 'D3'] as const).flatMap((document) =>
  readRows(document, readFileSync(path.join(SPEC, PAGES[document]), 'utf8')),
)
