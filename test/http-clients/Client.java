// The HTTP client of the JDK with its defaults: it offers HTTP/2 in each request over plain HTTP.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

public class Client {
  public static void main(String[] args) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (int i = 0; i < args.length; i += 2) {
      String what = args[i];
      URI uri = URI.create(args[i + 1]);
      if (what.equals("WEBSOCKET")) {
        System.out.println(what + " " + message(client, uri));
        continue;
      }
      HttpRequest.Builder request = HttpRequest.newBuilder(uri);
      if (what.equals("POST")) {
        String body = "{\"id\":\"gate\"}";
        request.header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body));
      }
      if (what.equals("RANGE")) request.header("range", "bytes=4-7");
      var answer = client.send(request.build(), BodyHandlers.ofByteArray());
      System.out.println(what + " " + answer.statusCode() + (what.equals("RANGE") ? " " + new String(answer.body()) : ""));
    }
    System.exit(0);
  }

  static String message(HttpClient client, URI uri) throws Exception {
    CompletableFuture<String> first = new CompletableFuture<>();
    client.newWebSocketBuilder().buildAsync(uri, new WebSocket.Listener() {
      public CompletionStage<?> onBinary(WebSocket socket, ByteBuffer data, boolean last) {
        byte[] type = new byte[4];
        data.get(4, type);
        first.complete(new String(type));
        return null;
      }

      public void onError(WebSocket socket, Throwable error) {
        first.completeExceptionally(error);
      }
    }).join();
    return first.get(60, TimeUnit.SECONDS);
  }
}
