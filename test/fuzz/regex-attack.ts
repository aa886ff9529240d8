import { type AST, RegExpParser } from '@eslint-community/regexpp'

/** Characters that classes are tried with, in this order. */
const CHARACTERS = [...'a0A -._/:;,=<>()[]{}"\'$%&+*?!@#|\\~^`', '\t', '\n', '\r', '\u0001', 'é', '\u2028']
/** Different characters of one class that attacks repeat. */
const PER_CLASS = 3
/** A quantifier below this repeats too little to be slow. */
const MIN_REPEATS = 50
/** Suffixes after the repetition that make a match fail. */
const ENDS = ['', '\u0001', '\n', '!'] as const
/** Lengths of attacks, in characters. They grow so slowly that an exponential search is found while it is short. */
const LENGTHS = [...Array.from({ length: 20 }, (_, step) => Math.round(16 * 1.25 ** step)), 4096, 16_384]
/** Longest run of one attack, in milliseconds: a quadratic search through 16,384 characters takes far more than ten times as long. */
const MAX_MS = 5
/** Runs of which the shortest counts. */
const ATTEMPTS = 5

/** Returns the attack that takes an expression more than linear time; null when none does. */
export function slowAttack(pattern: string, flags: string): string | null {
  const expression = new RegExp(pattern, flags)
  for (const [prefix, word] of wordsOf(pattern, flags))
    for (const end of ENDS) {
      const slow = LENGTHS.find((length) => isSlow(expression, prefix + word.repeat(length / word.length) + end))
      if (slow !== undefined)
        return `${JSON.stringify(prefix)} + ${JSON.stringify(word)} to ${slow} characters + ${JSON.stringify(end)}`
    }
  return null
}

function isSlow(expression: RegExp, text: string): boolean {
  let shortest = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < ATTEMPTS && shortest > MAX_MS; attempt++) {
    const start = process.cpuUsage()
    text.replace(expression, '')
    const { user, system } = process.cpuUsage(start)
    shortest = Math.min(shortest, (user + system) / 1000)
  }
  return shortest > MAX_MS
}

/** What to repeat, each with what comes before: pieces of the pattern that a quantifier repeats, and pieces before it. */
function wordsOf(pattern: string, flags: string): readonly (readonly [prefix: string, word: string])[] {
  const found = new Map<string, readonly [string, string]>()
  const add = (prefix: string, word: string) => {
    if (word !== '') found.set(JSON.stringify([prefix, word]), [prefix, word])
  }
  const ast = new RegExpParser().parsePattern(pattern, 0, pattern.length, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  })
  const words = new Words(flags)
  visit(ast, '', (quantifier, prefix, local) => {
    const repeated = words.all(quantifier.element)
    for (const word of [...repeated, ...repeated.map((each) => repeated[0] + each), prefix, local]) {
      add('', word)
      add(prefix, word)
    }
    for (const word of repeated) {
      add('', prefix + word)
      add(prefix, local + word)
    }
  })

  /** Visits the quantifiers, each with a text that matches what comes before it: in the whole, and in its own alternative. */
  function visit(
    node: AST.Pattern | AST.Group | AST.CapturingGroup | AST.LookaroundAssertion,
    before: string,
    call: (quantifier: AST.Quantifier, prefix: string, local: string) => void,
  ): void {
    for (const { elements } of node.alternatives) {
      let local = ''
      for (const element of elements) {
        if (element.type === 'Quantifier' && element.max >= MIN_REPEATS) call(element, before + local, local)
        const inner = element.type === 'Quantifier' ? element.element : element
        if ('alternatives' in inner) visit(inner, before + local, call)
        local += words.all(element)[0] ?? ''
      }
    }
  }
  return [...found.values()]
}

/** Short texts that parts of a pattern match. */
class Words {
  readonly #flags: string

  constructor(flags: string) {
    this.#flags = flags.replace(/[gy]/g, '')
  }

  all(element: AST.Element | AST.QuantifiableElement): readonly string[] {
    switch (element.type) {
      case 'Character':
      case 'CharacterSet':
      case 'CharacterClass':
      case 'ExpressionCharacterClass':
        return this.#charactersOf(element.raw)
      case 'Group':
      case 'CapturingGroup':
        return element.alternatives.map(({ elements }) => elements.map((each) => this.all(each)[0] ?? '').join(''))
      case 'Quantifier':
        return this.all(element.element).map((word) => word.repeat(element.min))
      default:
        return ['']
    }
  }

  #charactersOf(raw: string): readonly string[] {
    const one = new RegExp(`^(?:${raw})$`, this.#flags)
    const written = [...raw].filter((character) => one.test(character))
    return [...new Set([...CHARACTERS.filter((character) => one.test(character)), ...written])].slice(0, PER_CLASS)
  }
}
