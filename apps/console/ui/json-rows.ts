export interface JsonPiece {
  readonly kind: 'key' | 'string' | 'number' | 'word' | 'mark'
  readonly text: string
}

/** One line of the displayed JSON. */
export interface JsonRow {
  readonly depth: number
  readonly pieces: readonly JsonPiece[]
  /** Whether the row continues the text of the row before. */
  readonly continues: boolean
}

/** A longer text is broken into several rows of this many characters. */
const ROW_CHARS = 96

/**
 * Lays out JSON one member a line, from its characters: numbers, escapes and repeated names stay as they are written, any depth and any length take
 * time in proportion to the text, and a text that was cut or is not JSON is displayed too.
 */
export function jsonRows(text: string): readonly JsonRow[] {
  const layout = new Layout()
  let at = 0
  while (at < text.length) {
    const char = text.charAt(at)
    if (char === '"') at = layout.string(text, at)
    else if (char === '{' || char === '[') at = layout.open(text, at)
    else if (char === '}' || char === ']') at = layout.close(char, at)
    else if (char === ',') at = layout.comma(at)
    else if (char === ':') at = layout.colon(at)
    else if (/\s/.test(char)) at++
    else at = layout.word(text, at)
  }
  return layout.end()
}

/** The end of a string that begins at `start`, after its quotation mark; the end of the text if it has none. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x5c) at++
    else if (char === 0x22) return at + 1
  }
  return text.length
}

const WORD = /[^\s"{}[\],:]+/y

class Layout {
  readonly #rows: JsonRow[] = []
  #pieces: JsonPiece[] = []
  #depth = 0
  #chars = 0
  #continues = false

  string(text: string, start: number): number {
    const end = stringEnd(text, start)
    const isKey = /^\s*:/.test(text.slice(end, end + 16))
    this.#long(isKey ? 'key' : 'string', text.slice(start, end))
    return end
  }

  word(text: string, start: number): number {
    WORD.lastIndex = start
    const [found = text.charAt(start)] = WORD.exec(text) ?? []
    this.#long(/^-?\d/.test(found) ? 'number' : 'word', found)
    return start + found.length
  }

  open(text: string, at: number): number {
    const bracket = text.charAt(at)
    const [empty] = /^[[{]\s{0,64}[\]}]/.exec(text.slice(at, at + 66)) ?? []
    this.#add('mark', empty === undefined ? bracket : bracket + empty.slice(-1))
    if (empty !== undefined) return at + empty.length
    this.#break(1)
    return at + 1
  }

  close(bracket: string, at: number): number {
    this.#break(-1)
    this.#add('mark', bracket)
    return at + 1
  }

  comma(at: number): number {
    this.#add('mark', ',')
    this.#break(0)
    return at + 1
  }

  colon(at: number): number {
    this.#add('mark', ': ')
    return at + 1
  }

  end(): readonly JsonRow[] {
    this.#flush(false)
    return this.#rows
  }

  #long(kind: JsonPiece['kind'], text: string): void {
    let at = 0
    while (at < text.length) {
      const room = ROW_CHARS - this.#chars
      if (room <= 0) this.#flush(true)
      let end = Math.min(text.length, at + Math.max(1, room <= 0 ? ROW_CHARS : room))
      // A pair of surrogates is one character.
      if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end++
      this.#add(kind, text.slice(at, end))
      at = end
    }
  }

  #add(kind: JsonPiece['kind'], text: string): void {
    this.#pieces.push({ kind, text })
    this.#chars += text.length
  }

  #break(deeper: number): void {
    this.#flush(false)
    this.#depth = Math.max(0, this.#depth + deeper)
  }

  #flush(continued: boolean): void {
    if (this.#pieces.length > 0)
      this.#rows.push({ depth: this.#depth, pieces: this.#pieces, continues: this.#continues })
    this.#pieces = []
    this.#chars = 0
    this.#continues = continued
  }
}

/** The text of a row, for comparing and copying. */
export function rowText({ depth, pieces }: JsonRow): string {
  return '  '.repeat(Math.min(depth, 40)) + pieces.map(({ text }) => text).join('')
}
