# Net::HTTP of the standard library.

require "net/http"

ARGV.each_slice(2) do |what, url|
  uri = URI(url)
  request = what == "POST" ? Net::HTTP::Post.new(uri, "content-type" => "application/json") : Net::HTTP::Get.new(uri)
  request.body = '{"id":"gate"}' if what == "POST"
  request["range"] = "bytes=4-7" if what == "RANGE"
  answer = Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
  puts [what, answer.code, *([answer.body] if what == "RANGE")].join(" ")
end
