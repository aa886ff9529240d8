/** Start of a link. */
const LINK = '['

/** Writes words, lines and paragraphs; defers spaces, breaks and prefixes until text follows. */
export class TextWriter {
  readonly #limit: number
  readonly #parts: string[] = []
  #length = 0
  #breaks = 0
  #space = false
  #mark = ''
  #link = ''

  /** `limit`: maximum output in characters. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.#length >= this.#limit
  }

  get text(): string {
    return this.#parts.join('')
  }

  /** Writes text, with runs of spaces collapsed. */
  words(text: string): void {
    const collapsed = text.replace(/[ \t\r\n\f\u00a0]+/g, ' ')
    if (collapsed.startsWith(' ')) this.#space = true
    const trimmed = collapsed.trim()
    if (trimmed === '') return
    this.exactly(trimmed)
    this.#space = collapsed.endsWith(' ')
  }

  /** Writes text unchanged. */
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

  /** Starts a new line (1), or a new paragraph (2), before the next text. */
  breakLine(breaks: 1 | 2): void {
    this.#breaks = Math.max(this.#breaks, breaks)
    this.#space = false
  }

  /** Sets a prefix for the next text; empty to cancel it. */
  mark(text: string): void {
    this.#mark = text
  }

  openLink(): void {
    this.#link = LINK
  }

  /** Closes a link; one without text is omitted. */
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
