/** The three documents of the contract: identity broker, resources, gateway. */
export type DocumentName = 'D1' | 'D2' | 'D3'

/** One promise of the contract: a table row, rule, flag, claim, endpoint, error, limit, series or alert. */
export interface Requirement {
  /** `<document>.<section>.<key>`, for example `D1.mint.ttlSeconds`. Stable: tests cite it. */
  readonly id: string
  readonly document: DocumentName
  readonly key: string
  /** Heading of the document under which it stands. */
  readonly heading: string
}

/** The rows of one table or list of a document. */
export interface Section {
  readonly section: string
  readonly heading: string
  /** The keys, separated by white space. */
  readonly keys: string
}

/** The rows of a document's sections. */
export function rowsOf(document: DocumentName, sections: readonly Section[]): readonly Requirement[] {
  return sections.flatMap(({ section, heading, keys }) =>
    keys
      .trim()
      .split(/\s+/)
      .map((key) => ({ id: `${document}.${section}.${key}`, document, key, heading })),
  )
}
