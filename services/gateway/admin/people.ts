/** `adminAuth.people`: by name, the issuer and subject of a person, and aliases in sessions or chats. */
export type PeopleTable = Readonly<
  Record<string, { readonly issuer: string; readonly subject: string; readonly aliases: readonly string[] }>
>

/** Identifiers of a person: `sub:["<issuer>","<subject>"]`, and `name:<name>` for each name, in lower case. */
export type PersonMarks = readonly string[]

export interface KnownPerson {
  readonly names: readonly string[]
  /** Issuer and subject of a verified token; null: only names are known. */
  readonly subject: { readonly issuer: string; readonly subject: string } | null
}

/** Returns the identifiers of a person, including those of the table. */
export function marksOf({ names, subject }: KnownPerson, table: PeopleTable): PersonMarks {
  const own = [...names.map(nameMark), ...(subject === null ? [] : [subjectMark(subject)])]
  const all = new Set(own)
  for (const [name, person] of Object.entries(table)) {
    const entry = [subjectMark(person), ...[name, ...person.aliases].map(nameMark)]
    if (entry.some((mark) => own.includes(mark))) for (const mark of entry) all.add(mark)
  }
  return [...all]
}

/** Whether both may be one person: one mark in common is enough, so that doubt counts against a second vote. */
export function isSamePerson(one: PersonMarks, other: PersonMarks): boolean {
  return one.some((mark) => other.includes(mark))
}

/** The mark by issuer and subject; null: the person is known by name only, and nothing shows that another name is another person. */
export function linkOf(marks: PersonMarks): string | null {
  return marks.find((mark) => mark.startsWith(SUBJECT)) ?? null
}

const SUBJECT = 'sub:'

function subjectMark({ issuer, subject }: { readonly issuer: string; readonly subject: string }): string {
  return `${SUBJECT}${JSON.stringify([issuer, subject])}`
}

function nameMark(name: string): string {
  return `name:${name.normalize('NFKC').toLowerCase()}`
}
