/** Tokenizers that differ enough to be estimated separately. */
export type Tokenizer = 'openai' | 'anthropic' | 'google'

/** Tokens of parts of a text, measured with `o200k_base`, Anthropic's published tokenizer and Gemma's. */
interface Weights {
  /** A word of up to `wordLength` ASCII letters is one token, and each further `wordPart` letters are one more. */
  readonly wordLength: number
  readonly wordPart: number
  /** Words with other letters of the Latin alphabet. */
  readonly accent: number
  /** A run of digits, by digits for one token. */
  readonly digits: number
  /** A run of punctuation, by characters for one token. */
  readonly signs: number
  /** Per character: Greek and Cyrillic, ideographs, kana, and everything else. */
  readonly cyrillic: number
  readonly ideograph: number
  readonly kana: number
  readonly other: number
}

const WEIGHTS: Readonly<Record<Tokenizer, Weights>> = {
  openai: {
    wordLength: 10,
    wordPart: 5,
    accent: 0.4,
    digits: 3,
    signs: 3.5,
    cyrillic: 0.32,
    ideograph: 0.68,
    kana: 0.72,
    other: 0.6,
  },
  anthropic: {
    wordLength: 6,
    wordPart: 3.5,
    accent: 1.2,
    digits: 3,
    signs: 3,
    cyrillic: 0.56,
    ideograph: 1,
    kana: 1.1,
    other: 0.9,
  },
  google: {
    wordLength: 10,
    wordPart: 5,
    accent: 0.4,
    digits: 1,
    signs: 3,
    cyrillic: 0.31,
    ideograph: 0.65,
    kana: 0.5,
    other: 0.6,
  },
}

/** Characters of all texts together that are read; the rest is assumed to be alike. */
const READ_CHARACTERS = 65_536

/**
 * Estimates the tokens of texts, for usage that no provider reports. No bound: limits hold and pay what the bytes bound. Reads at most 65,536
 * characters of the texts that are added.
 */
export class TokenEstimate {
  readonly #weights: Weights
  #tokens = 0
  #characters = 0
  #read = 0

  constructor(tokenizer: Tokenizer) {
    this.#weights = WEIGHTS[tokenizer]
  }

  add(text: string): void {
    const part = text.slice(0, READ_CHARACTERS - this.#read)
    this.#tokens += countParts(part, this.#weights)
    this.#read += part.length
    this.#characters += text.length
  }

  get tokens(): number {
    return this.#read === 0 ? 0 : (this.#tokens * this.#characters) / this.#read
  }
}

type Kind = 'letter' | 'digit' | 'sign' | 'space' | 'line' | 'cyrillic' | 'ideograph' | 'kana' | 'other'

function countParts(text: string, weights: Weights): number {
  let tokens = 0
  let start = 0
  while (start < text.length) {
    const kind = kindOf(text.charCodeAt(start))
    let end = start + 1
    let accents = isAccent(text.charCodeAt(start)) ? 1 : 0
    while (end < text.length && kindOf(text.charCodeAt(end)) === kind && !(kind === 'letter' && isHump(text, end))) {
      if (isAccent(text.charCodeAt(end))) accents++
      end++
    }
    tokens += tokensOf(kind, { length: end - start, accents }, weights)
    start = end
  }
  return tokens
}

/** Tokens of a run of characters of one kind. A space belongs to the word after it. */
function tokensOf(
  kind: Kind,
  { length, accents }: { readonly length: number; readonly accents: number },
  weights: Weights,
): number {
  if (kind === 'letter')
    return 1 + Math.max(0, length - weights.wordLength) / weights.wordPart + (accents > 0 ? weights.accent : 0)
  if (kind === 'digit') return Math.ceil(length / weights.digits)
  if (kind === 'sign') return Math.ceil(length / weights.signs)
  if (kind === 'line') return 1
  if (kind === 'space') return length > 1 ? 1 : 0
  return length * weights[kind]
}

/** Words of identifiers begin with a capital letter. */
function isHump(text: string, at: number): boolean {
  return isUpper(text.charCodeAt(at)) && !isUpper(text.charCodeAt(at - 1))
}

function isUpper(code: number): boolean {
  return code >= 0x41 && code <= 0x5a
}

function isAccent(code: number): boolean {
  return code >= 0xc0 && code <= 0x24f
}

function kindOf(code: number): Kind {
  if (code < 0x80) {
    if ((code >= 0x61 && code <= 0x7a) || isUpper(code)) return 'letter'
    if (code >= 0x30 && code <= 0x39) return 'digit'
    if (code === 0x0a || code === 0x0d) return 'line'
    return code === 0x20 || code === 0x09 ? 'space' : 'sign'
  }
  if (isAccent(code)) return 'letter'
  if (code >= 0x370 && code <= 0x52f) return 'cyrillic'
  if (code >= 0x3040 && code <= 0x30ff) return 'kana'
  return code >= 0x3400 && code <= 0x9fff ? 'ideograph' : 'other'
}
