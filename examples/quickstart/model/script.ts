/** Replies by word of the question; the first match applies. */
const SCRIPT: readonly (readonly [RegExp, string])[] = [
  [/\b(?:hello|hi|hey)\b/i, 'Hello! I am a scripted model: I answer without an account, and each word is a token.'],
  [/\b(?:buy|shop|milk)\b/i, 'Write it down: a note called keep-milk that says "Buy milk."'],
  [/\bwho\b/i, 'The gateway knows: it reads the session token that your program never sees.'],
  [/\b(?:cost|price|budget)\b/i, 'Every answer is counted, and a session that has spent its budget is refused.'],
]

/** The answer in words, each with the space in front of it. */
export function reply(question: string): string[] {
  const scripted = SCRIPT.find(([pattern]) => pattern.test(question))?.[1]
  const text = scripted ?? `You said: ${question.trim().slice(0, 200)}`
  return text.match(/\s*\S+/g) ?? []
}
