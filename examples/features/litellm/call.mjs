import OpenAI from 'openai'

// OPENAI_BASE_URL and OPENAI_API_KEY are all that names the proxy.
const client = new OpenAI()
const messages = [{ role: 'user', content: 'Say hello.' }]
for (const model of process.argv.slice(2)) {
  const whole = await client.chat.completions.create({ model, messages })
  let streamed = ''
  for await (const { choices } of await client.chat.completions.create({ model, messages, stream: true }))
    streamed += choices[0]?.delta.content ?? ''
  console.log(`${model}: ${whole.choices[0].message.content} | ${streamed}`)
}
