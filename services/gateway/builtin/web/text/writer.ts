/** What a link begins with. */
const LINK = '['

/** Writes words, lines and paragraphs: spaces, breaks and marks are written when something follows them. */
export class TextWriter {
  readonly #limit: number
  readonly #parts: string[] = []
  #length = 0
  #breaks = 0
  #space = false
  #mark = ''
  #link = ''

  /** `limit`: characters after which nothing is taken any more. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.#length >= this.#limit
  }

  get text(): string {
    return this.#parts.join('')
  }

  /** Text in which runs of spaces mean one. */
  words(text: string): void {
    const collapsed = text.replace(/[ \t\r\n\f\u00a0]+/g, ' ')
    if (collapsed.startsWith(' ')) this.#space = true
    const trimmed = collapsed.trim()
    if (trimmed === '') return
    this.exactly(trimmed)
    this.#space = collapsed.endsWith(' ')
  }

  /** Text as it is. */
  exactly(text: string): void {
    if (text === '' || this.isFull) return
    if (this.#length > 0) {
      if (this.#breaks > 0) this.#write('\n'.repeat(this.#breaks))
      else if (this.#space) this.#write(' ')
    }
    this.#write(this.#mark + this.#link + text)
    this.#breaks = 0
    this.#space = false
    this.#mark = ''
    this.#link = ''
  }

  /** What follows stands on a line of its own (1), or behind an empty one (2). */
  breakLine(breaks: 1 | 2): void {
    this.#breaks = Math.max(this.#breaks, breaks)
    this.#space = false
  }

  /** What follows begins with this; empty: nothing followed what was to begin so. */
  mark(text: string): void {
    this.#mark = text
  }

  openLink(): void {
    this.#link = LINK
  }

  /** A link without words leaves nothing behind. */
  closeLink(href: string): void {
    const isEmpty = this.#link !== ''
    this.#link = ''
    if (!isEmpty && !this.isFull) this.#write(`](${href})`)
  }

  #write(text: string): void {
    this.#parts.push(text)
    this.#length += text.length
  }
}
