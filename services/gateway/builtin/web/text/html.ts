import { setImmediate } from 'node:timers/promises'
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { CLOSED, LINES, MARKS, PARAGRAPHS, UNREAD, VOID } from './elements.ts'
import { TextWriter } from './writer.ts'

/** Characters parsed per turn of the event loop. */
const CHUNK = 64 * 1024
/** Maximum length of a link target, in characters. */
const MAX_HREF = 1_024
/** Maximum length of a title, in characters. */
const MAX_TITLE = 512

export interface ReadPage {
  readonly title: string
  readonly text: string
}

/**
 * Converts a page to Markdown with headings, lists, tables and links. Stops after `limit` characters of
 * output; links are resolved against `base`. Any text is valid input.
 */
export async function readHtml(html: string, base: URL, limit: number): Promise<ReadPage> {
  const reader = new PageReader(html, base, limit)
  const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, reader)
  for (let at = 0; at < html.length && !reader.isFull; at += CHUNK) {
    if (at > 0) await setImmediate()
    tokenizer.write(html.slice(at, at + CHUNK))
  }
  tokenizer.end()
  return reader.page
}

/** The skipped element, and the number of open elements with its name. */
interface LeftOut {
  readonly name: string
  depth: number
}

/** Processes tags and texts in sequence: it builds no tree, so that no page is too deep. Positions are those in the page. */
class PageReader implements TokenizerCallbacks {
  readonly #html: string
  readonly #writer: TextWriter
  /** Target of the open link, or null if there is none or it is omitted. */
  #link: string | null = null
  #base: URL
  #title = ''
  #inTitle = false
  #inPre = 0
  #leftOut: LeftOut | null = null
  #tag = ''
  #attribute = ''
  #value = ''
  #href: string | null = null
  #alt = ''
  #hidden = false

  constructor(html: string, base: URL, limit: number) {
    this.#html = html
    this.#base = base
    this.#writer = new TextWriter(limit)
  }

  get isFull(): boolean {
    return this.#writer.isFull
  }

  get page(): ReadPage {
    const title = this.#title.replace(/\s+/g, ' ').trim().slice(0, MAX_TITLE)
    return { title: title.toWellFormed(), text: this.#writer.text }
  }

  ontext(start: number, end: number): void {
    this.#text(this.#html.slice(start, end))
  }

  ontextentity(codepoint: number): void {
    this.#text(String.fromCodePoint(codepoint))
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, end).toLowerCase()
    this.#href = null
    this.#alt = ''
    this.#hidden = false
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#html.slice(start, end).toLowerCase()
    this.#value = ''
  }

  onattribdata(start: number, end: number): void {
    // Values are only needed up to twice the maximum target length.
    if (this.#value.length <= MAX_HREF * 2) this.#value += this.#html.slice(start, Math.min(end, start + MAX_HREF * 2))
  }

  onattribentity(codepoint: number): void {
    this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    if (this.#attribute === 'href') this.#href = this.#value
    else if (this.#attribute === 'alt') this.#alt = this.#value
    else if (this.#attribute === 'hidden') this.#hidden = true
    else if (this.#attribute === 'style')
      this.#hidden ||= /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(this.#value)
  }

  onopentagend(): void {
    this.#open(this.#tag)
  }

  onselfclosingtag(): void {
    // HTML ignores the slash: only void elements end with their tag.
    this.#open(this.#tag)
  }

  onclosetag(start: number, end: number): void {
    const name = this.#html.slice(start, end).toLowerCase()
    if (this.#leftOut !== null) this.#closeLeftOut(this.#leftOut, name)
    else if (name === 'title') this.#inTitle = false
    else if (name === 'a') this.#closeLink()
    else if (name === 'pre') this.#closePre()
    else this.#closeBlock(name)
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onprocessinginstruction(): void {}

  #text(text: string): void {
    if (this.#inTitle) {
      if (this.#title.length < MAX_TITLE * 2) this.#title += text
    } else if (this.#leftOut !== null) return
    else if (this.#inPre > 0) this.#writer.exactly(text)
    else this.#writer.words(text)
  }

  #open(name: string): void {
    const leftOut = this.#leftOut
    if (leftOut !== null) {
      if (name === leftOut.name) leftOut.depth++
      return
    }
    if (UNREAD.has(name) || (this.#hidden && CLOSED.has(name))) this.#leftOut = { name, depth: 1 }
    else if (VOID.has(name)) this.#single(name)
    else if (name === 'title') this.#inTitle = this.#title === ''
    else if (name === 'a') this.#openLink()
    else this.#openBlock(name)
  }

  #single(name: string): void {
    if (name === 'br') this.#writer.breakLine(1)
    else if (name === 'hr') this.#rule()
    else if (name === 'img') this.#writer.words(this.#alt)
    else if (name === 'base')
      this.#base = (this.#href === null ? null : URL.parse(this.#href, this.#base)) ?? this.#base
  }

  #rule(): void {
    this.#writer.breakLine(2)
    this.#writer.exactly('---')
    this.#writer.breakLine(2)
  }

  #openBlock(name: string): void {
    this.#breakAt(name)
    const mark = MARKS.get(name)
    if (mark !== undefined) this.#writer.mark(mark)
    else if (name === 'td' || name === 'th') this.#writer.exactly('| ')
    else if (name === 'pre') {
      this.#writer.exactly('```\n')
      this.#inPre++
    }
  }

  #closeBlock(name: string): void {
    if (MARKS.has(name)) this.#writer.mark('')
    this.#breakAt(name)
  }

  #closePre(): void {
    if (this.#inPre === 0) return
    this.#inPre--
    this.#writer.breakLine(1)
    this.#writer.exactly('```')
    this.#writer.breakLine(2)
  }

  #breakAt(name: string): void {
    if (PARAGRAPHS.has(name)) this.#writer.breakLine(2)
    else if (LINES.has(name)) this.#writer.breakLine(1)
    else if (name === 'td' || name === 'th') this.#writer.words(' ')
  }

  /** HTML has no nested links: a new one ends the previous one. */
  #openLink(): void {
    this.#closeLink()
    this.#link = this.#href === null ? null : this.#addressOf(this.#href)
    if (this.#link !== null) this.#writer.openLink()
  }

  #closeLink(): void {
    if (this.#link !== null) this.#writer.closeLink(this.#link)
    this.#link = null
  }

  #closeLeftOut(leftOut: LeftOut, name: string): void {
    if (name !== leftOut.name) return
    leftOut.depth--
    if (leftOut.depth === 0) this.#leftOut = null
  }

  /** Returns the target of a link, or null if it is not a page or too long. */
  #addressOf(href: string): string | null {
    if (href.startsWith('#')) return null
    const url = URL.parse(href, this.#base)
    const leads = url !== null && (url.protocol === 'https:' || url.protocol === 'http:')
    return leads && url.href.length <= MAX_HREF ? url.href : null
  }
}
