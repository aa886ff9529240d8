/**
 * Denies model calls that could pass the budget of a session.
 *
 * Prints:
 *   hello: Hello! I am a scripted model: I answer without an account, and each word is a token.
 *   hello: Hello! I am a scripted model: I answer without an account, and each word is a token.
 *   hello: refused (budget_exceeded)
 *   SESSION                    ROUTE              CALLS  PROMPT  COMPLETION  COST          HELD
 *   default/assistant/example  default.assistant  2      2       34          0.002740 USD  0.000000 USD
 *   total                                         2      2       34          0.002740 USD  0.000000 USD
 */
import { start } from './plat.ts'

await using plat = await start({
  gateway: { sessionBudgetUSD: 0.008 },
  // For a million tokens. A call holds the most it may cost, is shortened to what is left, and pays for what it used.
  prices: { version: 1, currency: 'USD', id: 'example', models: { 'openai/*': { input: '10', output: '80' } } },
})
const session = await plat.session()
await plat.prompt(session, 'hello')
await plat.prompt(session, 'hello')
await plat.prompt(session, 'hello')
console.log((await plat.command('costs')).trim())
session.close()
